package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Bucket is the KV bucket that holds one checkpoint a source.
const Bucket = "tidegate"

// Checkpoints reads and writes the checkpoint of one source. Load and Save have one user at a time; Verify may be called
// beside them.
type Checkpoints struct {
	conn   *Conn
	kv     jetstream.KeyValue
	writer string // this process

	mu       sync.Mutex // held while NATS is asked
	source   string
	revision uint64      // of the entry as we know it
	known    *Checkpoint // what the entry was found to be, or was made: it never goes back behind that
}

// OpenCheckpoints opens the bucket, and makes it with these replicas and this storage where it does not exist.
func OpenCheckpoints(ctx context.Context, c *Conn, replicas int, storage jetstream.StorageType) (*Checkpoints, error) {
	kv, err := c.js.KeyValue(ctx, Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket:      Bucket,
			Description: "tidegate: what is known to be stored of each source",
			Replicas:    max(replicas, 1),
			Storage:     storage,
		})
		if errors.Is(err, jetstream.ErrBucketExists) {
			kv, err = c.js.KeyValue(ctx, Bucket)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open KV bucket %s: %w", Bucket, err)
	}
	return &Checkpoints{conn: c, kv: kv, writer: nuid.Next()}, nil
}

// Load gives the source's checkpoint as the bucket's leader has it, nil if there is none. From then on Save expects to
// be the only writer of it.
func (k *Checkpoints) Load(ctx context.Context, source string) (*Checkpoint, error) {
	if err := checkSource(source); err != nil {
		return nil, err
	}
	k.source = source
	data, revision, err := k.read(ctx)
	if err != nil {
		return nil, err
	}
	if data == nil {
		k.revision = revision
		return nil, k.gone()
	}
	cp, _, err := decodeCheckpoint(data)
	switch {
	case err != nil:
		return nil, &CheckpointError{Source: source, Err: err}
	case cp.Source != source:
		return nil, &CheckpointError{Source: source, Err: fmt.Errorf("it is of source %q", cp.Source)}
	case k.isBehind(cp):
		return nil, k.setBack(cp)
	}
	k.revision, k.known = revision, copied(cp)
	return cp, nil
}

// Verify looks whether the entry still is what was read or written last: a *LostCheckpointError says that it is gone or
// was set back, a *StolenError that another process has written it. It changes nothing.
func (k *Checkpoints) Verify(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		return nil
	}
	data, revision, err := k.read(ctx)
	if err != nil || revision == k.revision {
		return err
	}
	return k.judge(data, revision)
}

// judge says of an entry at another revision than the known one whether it may be: only our own, written late.
func (k *Checkpoints) judge(data []byte, revision uint64) error {
	if data == nil && k.known != nil {
		return k.gone()
	}
	cp, writer, err := decodeCheckpoint(data)
	switch {
	case err == nil && k.isBehind(cp):
		return k.setBack(cp)
	case err != nil || writer != k.writer:
		return &StolenError{Source: k.source, Revision: revision}
	}
	return nil
}

func (k *Checkpoints) isBehind(cp *Checkpoint) bool { return k.known != nil && cp.Behind(k.known) }

func (k *Checkpoints) setBack(cp *Checkpoint) error {
	return &LostCheckpointError{Source: k.source, Reason: "it was set back", Known: k.known, Now: cp}
}

// gone is nil where no entry was known.
func (k *Checkpoints) gone() error {
	if k.known == nil {
		return nil
	}
	return &LostCheckpointError{Source: k.source, Reason: "the key " + k.source + " of KV bucket " + Bucket + " was deleted", Known: k.known}
}

// copied keeps the checkpoint as it is now; its maps are never changed, only replaced.
func copied(cp *Checkpoint) *Checkpoint {
	c := *cp
	return &c
}

// Save writes the checkpoint. When it returns nil, the entry holds exactly this; with a *StolenError another process
// has written it; after any other error it is not known to be written, and the next Save finds out.
func (k *Checkpoints) Save(ctx context.Context, cp *Checkpoint) error {
	if cp.Source != k.source {
		return fmt.Errorf("write checkpoint of source %q: %q was loaded", cp.Source, k.source)
	}
	data, err := cp.encode(k.writer)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	// The second attempt is for an entry of our own that was written although we had been told it was not.
	for range 2 {
		revision, writeErr := k.update(ctx, data)
		if writeErr == nil {
			k.revision, k.known = revision, copied(cp)
			return nil
		}
		written, err := k.settle(ctx, data)
		if written {
			k.known = copied(cp)
		}
		if err != nil || written {
			return err
		}
		if !isWrongRevision(writeErr) {
			return fmt.Errorf("write checkpoint of source %q: %w", k.source, writeErr)
		}
	}
	return fmt.Errorf("write checkpoint of source %q: %w", k.source, errIncomplete)
}

func (k *Checkpoints) update(ctx context.Context, data []byte) (revision uint64, err error) {
	ctx, cancel := k.conn.bounded(ctx)
	defer cancel()
	revision, err = k.kv.Update(ctx, k.source, data, k.revision)
	return revision, causeOf(ctx, err)
}

// settle finds out what became of an attempt to write data.
func (k *Checkpoints) settle(ctx context.Context, data []byte) (written bool, err error) {
	current, revision, err := k.read(ctx)
	if err != nil || revision == k.revision {
		return false, err
	}
	if err := k.judge(current, revision); err != nil {
		return false, err
	}
	k.revision = revision
	return bytes.Equal(current, data), nil
}

// read gives the entry, nil if it does not exist or was deleted, and the revision that the next write must name.
func (k *Checkpoints) read(ctx context.Context) (data []byte, revision uint64, err error) {
	m, err := k.conn.getMsg(ctx, "KV_"+Bucket, msgGet{LastFor: "$KV." + Bucket + "." + k.source})
	if k.known != nil && errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, 0, &LostCheckpointError{Source: k.source, Reason: "KV bucket " + Bucket + " was deleted", Known: k.known}
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read checkpoint of source %q: %w", k.source, err)
	}
	switch {
	case m == nil:
		return nil, 0, nil
	case m.header.Get("KV-Operation") != "":
		return nil, m.seq, nil
	case len(m.data) == 0: // an empty value is there, and is no checkpoint
		return []byte{}, m.seq, nil
	}
	return m.data, m.seq, nil
}

// checkSource refuses names that are no key of a bucket.
func checkSource(name string) error {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return fmt.Errorf("use source name %q: %q is not among letters, digits, '-', '_' and '.': set source.name", name, c)
		}
	}
	if name == "" || name[0] == '.' || name[len(name)-1] == '.' || strings.Contains(name, "..") {
		return fmt.Errorf("use source name %q: it must not be empty, begin or end with '.', or have two in a row: set source.name", name)
	}
	return nil
}

// isWrongRevision reports that the entry was not at the revision that the write named.
func isWrongRevision(err error) bool {
	var refusal *jetstream.APIError
	return errors.As(err, &refusal) && (refusal.ErrorCode == codeWrongLastSequence || refusal.ErrorCode == codeWrongLastSequenceReplicated)
}
