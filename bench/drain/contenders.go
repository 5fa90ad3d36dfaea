package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tidegate-cdc/tidegate/internal/pgcluster"
)

// pass is one contender's turn in one round.
type pass struct {
	*ground
	*backlog
	options *options
	round   int
	slot    string
}

// figures are what one turn gave. CPU and memory are 0 where the system does not tell.
type figures struct {
	Seconds      float64 `json:"seconds"`
	RowsPerSec   float64 `json:"rows_per_second"`
	CPU          float64 `json:"cpu_seconds"`
	PeakBytes    int64   `json:"peak_bytes,omitempty"`
	NATSCPU      float64 `json:"nats_cpu_seconds,omitempty"`
	WalsenderCPU float64 `json:"walsender_cpu_seconds,omitempty"`
}

// timed gives the figures that follow from the time.
func (p *pass) timed(took time.Duration) figures {
	return figures{Seconds: took.Seconds(), RowsPerSec: float64(p.rows) / took.Seconds()}
}

const bridgeConfig = `
source: {name: %q}
postgres: {url: %q}
slot: {name: %q, publication: %q, create: false, snapshot: skip}
streams: [{name: %q}]
outboxes: [{table: public.outbox, stream: %[5]q, subject: "outbox.{aggregate_type}.{aggregate_id}"}]
park: {store: off}
nats: {url: %[6]q}
publish: {max_in_flight: %[7]d}
http: {listen: "127.0.0.1:%[8]d"}
`

// bridge drains by a bridge: from the moment when it has the slot until its stream holds the last row.
func (p *pass) bridge(ctx context.Context, r rival) (f figures, err error) {
	if err := p.emptyStream(ctx, nil); err != nil {
		return f, err
	}
	cmd, err := p.bridgeCommand(r)
	if err != nil {
		return f, err
	}
	if err := p.copySlot(ctx, p.slot); err != nil {
		return f, err
	}
	proc, err := startProcess(p.held, r.name, cmd)
	if err != nil {
		return f, err
	}
	defer proc.kill()
	if f, err = p.watchBridge(ctx, proc); err != nil {
		return f, err
	}
	if err := proc.stop(); err != nil {
		return f, err
	}
	return f, p.dropSlot(ctx, p.slot)
}

func (p *pass) bridgeCommand(r rival) (*exec.Cmd, error) {
	port, err := pgcluster.FreePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(p.held.Dir(), "tidegate.yaml")
	text := fmt.Sprintf(bridgeConfig, p.slot, p.postgres.URL("postgres"), p.slot, publication, streamName, p.natsURL, p.options.window, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if p.options.profile != "" && r.program == "" {
		return self("bridge", file, profilePath(p.options.profile, p))
	}
	program := r.program
	if program == "" {
		program = p.options.tidegate
	}
	cmd := exec.Command(program, "run", "--config", file)
	cmd.Env = cleanEnv(r.env...)
	return cmd, nil
}

// watchBridge measures a bridge that has been started. The end is the time at which the server stored the last row.
func (p *pass) watchBridge(ctx context.Context, proc *process) (f figures, err error) {
	nats := follow(p.nats.pid())
	pid, began, err := p.awaitWalsender(ctx, p.slot, proc)
	if err != nil {
		return f, err
	}
	bridge, walsender := followWhole(proc.pid()), followWhole(pid)
	var last uint64
	moved := time.Now()
	err = poll(ctx, "wait for the rows", proc, func() (bool, error) {
		stored, err := p.stored(ctx)
		if stored != last {
			last, moved = stored, time.Now()
		}
		if err == nil && time.Since(moved) > stuck {
			err = fmt.Errorf("%s stored %d of %d rows and then none for %v", proc.name, stored, p.rows, stuck)
		}
		return stored >= uint64(p.rows), err
	})
	if err != nil {
		return f, err
	}
	bridge.look()
	walsender.look()
	nats.look()
	ended, err := p.lastStored(ctx)
	f = p.timed(ended.Sub(began))
	f.CPU, f.PeakBytes, f.WalsenderCPU, f.NATSCPU = bridge.cpu, bridge.peak, walsender.cpu, nats.cpu
	return f, err
}

// stored counts the messages of the stream, which the bridge may not have made yet.
func (p *pass) stored(ctx context.Context) (uint64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(lookInterval): // asking costs the server something
	}
	stream, err := p.js.Stream(ctx, streamName)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("look at stream: %w", err)
	}
	return stream.CachedInfo().State.Msgs, nil
}

// lastStored is when the server stored the last row; the stream must hold each row once.
func (p *pass) lastStored(ctx context.Context) (time.Time, error) {
	stream, err := p.js.Stream(ctx, streamName)
	if err != nil {
		return time.Time{}, fmt.Errorf("look at stream: %w", err)
	}
	state := stream.CachedInfo().State
	if state.Msgs != uint64(p.rows) {
		return time.Time{}, fmt.Errorf("look at stream: it holds %d messages for %d rows", state.Msgs, p.rows)
	}
	return state.LastTime, nil
}

// recvlogical drains by pg_recvlogical, which throws everything away: from the moment when it has the slot until it
// has seen the end of the backlog.
func (p *pass) recvlogical(ctx context.Context) (f figures, err error) {
	if err := p.copySlot(ctx, p.slot); err != nil {
		return f, err
	}
	cmd := exec.Command(filepath.Join(p.bin, "pg_recvlogical"),
		"--dbname="+p.postgres.URL("postgres"), "--slot="+p.slot, "--start", "--endpos="+p.end, "--file=/dev/null", "--fsync-interval=0",
		"--no-loop", "-o", "proto_version=1", "-o", "publication_names="+publication, "-o", "messages=true")
	cmd.Env = cleanEnv()
	proc, err := startProcess(p.held, nameRecvlogical, cmd)
	if err != nil {
		return f, err
	}
	defer proc.kill()
	pid, began, err := p.awaitWalsender(ctx, p.slot, proc)
	if err != nil {
		return f, err
	}
	reader, walsender := followWhole(proc.pid()), followWhole(pid)
	if err := await(ctx, proc, reader, walsender); err != nil {
		return f, err
	}
	f = p.timed(proc.ended.Sub(began))
	f.CPU, f.PeakBytes, f.WalsenderCPU = reader.cpu, reader.peak, walsender.cpu
	return f, p.dropSlot(ctx, p.slot)
}

// await waits until a process has ended, in order, and looks at the usages meanwhile.
func await(ctx context.Context, proc *process, usages ...*usage) error {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		select {
		case <-proc.gone:
			return proc.failure()
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			for _, u := range usages {
				u.look()
			}
		}
	}
}
