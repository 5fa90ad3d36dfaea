package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicks is the unit of /proc's CPU times: 100 a second on every Linux that Go runs on.
const clockTicks = 100

// cpuSeconds is the CPU time that a process has used so far, 0 where there is no /proc or no process any more.
func cpuSeconds(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before may hold anything
	fields := strings.Fields(rest)
	const user, system = 11, 12
	if len(fields) <= system {
		return 0
	}
	u, _ := strconv.ParseFloat(fields[user], 64)
	s, _ := strconv.ParseFloat(fields[system], 64)
	return (u + s) / clockTicks
}

// peakBytes is the most memory that a process has held, 0 where that is not known.
func peakBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// usage follows a process that may end before it can be asked: its last CPU time and peak stay known.
type usage struct {
	pid  int
	from float64
	cpu  float64
	peak int64
}

// follow begins to count now.
func follow(pid int) *usage {
	u := &usage{pid: pid}
	u.from = cpuSeconds(pid)
	u.look()
	return u
}

// followWhole counts from the process's beginning.
func followWhole(pid int) *usage {
	u := &usage{pid: pid}
	u.look()
	return u
}

// look takes a sample.
func (u *usage) look() {
	if cpu := cpuSeconds(u.pid); cpu > 0 {
		u.cpu = cpu - u.from
	}
	u.peak = max(u.peak, peakBytes(u.pid))
}

// lookInterval is how often followed processes are looked at: what they use after the last look is not seen.
const lookInterval = 10 * time.Millisecond
