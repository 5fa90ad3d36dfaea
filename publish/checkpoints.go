package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Bucket is the KV bucket that holds one checkpoint a source.
const Bucket = "tidegate"

// Checkpoints reads and writes the checkpoint of one source. It has one user at a time.
type Checkpoints struct {
	conn     *Conn
	kv       jetstream.KeyValue
	writer   string // this process
	source   string
	revision uint64 // of the entry as we know it
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
	k.revision = revision
	if data == nil {
		return nil, nil
	}
	cp, _, err := decodeCheckpoint(data)
	switch {
	case err != nil:
		return nil, &CheckpointError{Source: source, Err: err}
	case cp.Source != source:
		return nil, &CheckpointError{Source: source, Err: fmt.Errorf("it is of source %q", cp.Source)}
	}
	return cp, nil
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
	// The second attempt is for an entry of our own that was written although we had been told it was not.
	for range 2 {
		revision, writeErr := k.update(ctx, data)
		if writeErr == nil {
			k.revision = revision
			return nil
		}
		written, err := k.settle(ctx, data)
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
	_, writer, err := decodeCheckpoint(current)
	if err != nil || writer != k.writer {
		return false, &StolenError{Source: k.source, Revision: revision}
	}
	k.revision = revision
	return bytes.Equal(current, data), nil
}

// read gives the entry, nil if it does not exist or was deleted, and the revision that the next write must name.
func (k *Checkpoints) read(ctx context.Context) (data []byte, revision uint64, err error) {
	m, err := k.conn.getMsg(ctx, "KV_"+Bucket, msgGet{LastFor: "$KV." + Bucket + "." + k.source})
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
