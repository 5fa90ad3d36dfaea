package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// order is what a child that publishes is told once it has its messages.
type order struct {
	Window int `json:"window"`
}

// rawResult is what it answers.
type rawResult struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"`
}

// rawPublish publishes what the bridge has left in the stream again, into an empty stream of the same settings, from a
// process of its own: from the first message until the last PubAck.
func (p *pass) rawPublish(ctx context.Context) (f figures, err error) {
	cmd, err := self("publish", p.natsURL, strconv.Itoa(p.rows))
	if err != nil {
		return f, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return f, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return f, err
	}
	proc, err := startProcess(p.held, nameRaw, cmd)
	if err != nil {
		return f, err
	}
	defer proc.kill()
	stop := context.AfterFunc(ctx, func() { _ = proc.cmd.Process.Kill() })
	defer stop()
	return p.conduct(ctx, proc, in, bufio.NewReader(out))
}

// conduct leads the child through its work.
func (p *pass) conduct(ctx context.Context, proc *process, in io.Writer, out *bufio.Reader) (f figures, err error) {
	if _, err := out.ReadString('\n'); err != nil { // it has the messages
		<-proc.gone
		return f, proc.endedEarly()
	}
	stream, err := p.js.Stream(ctx, streamName)
	if err != nil {
		return f, fmt.Errorf("look at stream: %w", err)
	}
	if err := p.emptyStream(ctx, &stream.CachedInfo().Config); err != nil {
		return f, err
	}
	nats := follow(p.nats.pid())
	if err := json.NewEncoder(in).Encode(order{Window: p.options.window}); err != nil {
		return f, err
	}
	var result rawResult
	if err := json.NewDecoder(out).Decode(&result); err != nil {
		<-proc.gone
		return f, proc.endedEarly()
	}
	nats.look()
	if _, err := p.lastStored(ctx); err != nil {
		return f, err
	}
	f = p.timed(time.Duration(result.Seconds * float64(time.Second)))
	f.CPU, f.NATSCPU = result.CPU, nats.cpu
	return f, nil
}

// publishRaw is the child: it takes the messages of the stream into memory, waits for its order and publishes them.
func publishRaw(ctx context.Context, url, count string, in io.Reader, out io.Writer) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	messages, err := readStream(ctx, nc, n)
	if err != nil {
		return fmt.Errorf("read stream: %w", err)
	}
	runtime.GC()
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return err
	}
	cpu, began := ownCPU(), time.Now()
	if err := publishAll(ctx, nc, messages, o.Window); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(rawResult{Seconds: time.Since(began).Seconds(), CPU: ownCPU() - cpu})
}

// readStream reads the first n messages of the stream.
func readStream(ctx context.Context, nc *nats.Conn, n int) ([]*nats.Msg, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	consumer, err := js.OrderedConsumer(ctx, streamName, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	next, err := consumer.Messages(jetstream.PullMaxMessages(4096))
	if err != nil {
		return nil, err
	}
	defer next.Stop()
	messages := make([]*nats.Msg, 0, n)
	for len(messages) < n {
		m, err := next.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, err
		}
		messages = append(messages, &nats.Msg{Subject: m.Subject(), Header: m.Headers(), Data: m.Data()})
	}
	return messages, nil
}

// publishAll publishes with at most window messages in flight and one subscription for all their PubAcks: of the ways
// to publish that the client has, the one that costs least.
func publishAll(ctx context.Context, nc *nats.Conn, messages []*nats.Msg, window int) error {
	inbox := nc.NewInbox() + "."
	acks := make(chan *nats.Msg, 2*window)
	sub, err := nc.ChanSubscribe(inbox+"*", acks)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	sent, acked := 0, 0
	var reply []byte
	for acked < len(messages) {
		for ; sent < len(messages) && sent-acked < window; sent++ {
			m := messages[sent]
			reply = strconv.AppendInt(append(reply[:0], inbox...), int64(sent), 10)
			m.Reply = string(reply)
			if err := nc.PublishMsg(m); err != nil {
				return err
			}
		}
		n, err := takeAcks(ctx, acks)
		if err != nil {
			return err
		}
		acked += n
	}
	return nil
}

// takeAcks waits for a PubAck and takes all that have come.
func takeAcks(ctx context.Context, acks <-chan *nats.Msg) (n int, err error) {
	select {
	case m := <-acks:
		n, err = 1, checkAck(m)
	case <-time.After(stuck):
		return 0, errors.New("no PubAck came")
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for err == nil {
		select {
		case m := <-acks:
			n, err = n+1, checkAck(m)
		default:
			return n, nil
		}
	}
	return n, err
}

func checkAck(m *nats.Msg) error {
	if len(m.Data) == 0 || bytes.Contains(m.Data, []byte(`"error"`)) || bytes.Contains(m.Data, []byte(`"duplicate"`)) {
		return fmt.Errorf("a message was not stored: %s", m.Data)
	}
	return nil
}

// ownCPU is the CPU time of this process.
func ownCPU() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}
