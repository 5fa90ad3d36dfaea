// Package admin is what an operator's tools ask a running bridge over HTTP: metrics, liveness and readiness.
package admin

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Role is what an instance does at the moment.
type Role string

// The roles of an instance.
const (
	RoleStarting Role = "starting"
	RoleStandby  Role = "standby" // another instance holds the slot; ready to take over
	RoleActive   Role = "active"
)

// Health collects why the bridge is not well. It is safe for use by many goroutines.
type Health struct {
	grace time.Duration
	now   func() time.Time

	mu       sync.Mutex
	role     Role
	holder   string
	problems map[string]Problem
	degraded map[string]Problem
	beat     time.Time
	turning  bool // the pipeline's loop owes a beat
}

// Problem is one reason for which rows do not flow.
type Problem struct {
	What  string    `json:"what"`
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Ready    bool      `json:"ready"`
	Role     Role      `json:"role"`
	Holder   string    `json:"holder,omitempty"`
	Problems []Problem `json:"problems"`
	// Degraded is what somebody should look at although rows flow.
	Degraded []Problem `json:"degraded,omitempty"`
}

// NewHealth makes a Health in which a problem makes the bridge unready once it is older than grace.
func NewHealth(grace time.Duration) *Health {
	return &Health{grace: grace, now: time.Now, role: RoleStarting, problems: map[string]Problem{}, degraded: map[string]Problem{}}
}

// SetRole says what the instance does now, and for a standby who holds the slot.
func (h *Health) SetRole(r Role, holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.role, h.holder = r, holder
}

// Report records a problem, or a new reason for a known one, which keeps its age.
func (h *Health) Report(what, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(h.problems, what, why)
}

// Degrade records, with an empty why ends, something that somebody should look at although rows flow: it never makes
// the bridge unready.
func (h *Health) Degrade(what, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if why == "" {
		delete(h.degraded, what)
		return
	}
	h.note(h.degraded, what, why)
}

func (h *Health) note(in map[string]Problem, what, why string) {
	p, known := in[what]
	if !known {
		p = Problem{What: what, Since: h.now()}
	}
	p.Why = why
	in[what] = p
}

// Reported tells whether a problem is on record.
func (h *Health) Reported(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, known := h.problems[what]
	return known
}

// Clear ends a problem.
func (h *Health) Clear(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.problems, what)
}

// Beat says that the pipeline's loop turns, and will say so again until Rest.
func (h *Health) Beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beat, h.turning = h.now(), true
}

// Rest says that no loop turns: there is nothing to publish from, or to.
func (h *Health) Rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turning = false
}

// stuckAfter is how long the pipeline's loop may stay away before the process counts as hung.
const stuckAfter = 2 * time.Minute

// Alive reports whether the process should be left running: false only when the pipeline's loop hangs. A peer that is
// not there is no reason: a new process would not find it either.
func (h *Health) Alive() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.turning || h.now().Sub(h.beat) < stuckAfter
}

// Readiness says whether the bridge does its work, or is a standby that could, and what hinders it.
func (h *Health) Readiness() Readiness {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := Readiness{Ready: h.role != RoleStarting, Role: h.role, Holder: h.holder, Problems: []Problem{}}
	for _, what := range slices.Sorted(maps.Keys(h.problems)) {
		p := h.problems[what]
		r.Problems = append(r.Problems, p)
		if h.now().Sub(p.Since) >= h.grace {
			r.Ready = false
		}
	}
	for _, what := range slices.Sorted(maps.Keys(h.degraded)) {
		r.Degraded = append(r.Degraded, h.degraded[what])
	}
	return r
}
