package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// maxSnapshot bounds a message with a compressed snapshot, so that it fits the bus (1 MB) with room to spare. A team with
	// 10,000 messages and tool calls reaches it, and a run with some megabytes of results. A larger snapshot has parts.
	maxSnapshot = 512 << 10
	// maxParts bounds the parts: 8 MiB. Beyond it the log is read from the end of the last snapshot.
	maxParts = 16
)

// A replica of the bucket may lag behind a snapshot that was just stored: Erase looks again.
const (
	eraseTries = 5
	erasePause = 50 * time.Millisecond
)

var errHuge = errors.New("the state is too large for a snapshot: the log is read from the last one")

// part is one message of a snapshot that has several.
type part struct {
	key string
	raw []byte
	rev uint64 // of the message that it replaces
}

// split turns a packed snapshot into the message that names its parts, and the parts. One that fits a message has none, and
// replaces former parts by nothing.
//
// The revisions of former parts are read before the message that names the new ones is stored, and Erase removes first this
// message and then the parts that it names. So a part that comes later than a deletion is refused.
func (x *Snapshots[S]) split(ctx context.Context, log subject.Log, one *snapshot, raw []byte, was *place) ([]part, error) {
	var parts []part
	if len(raw) > maxSnapshot {
		one.State = nil
		for chunk := range slices.Chunk(raw, maxSnapshot) {
			sum := sha256.Sum256(chunk)
			one.Parts = append(one.Parts, hex.EncodeToString(sum[:]))
			parts = append(parts, part{key: subject.FoldPart(log, len(parts)), raw: chunk})
		}
	}
	if len(parts) > maxParts {
		return nil, errHuge
	}
	for len(parts) < was.live {
		parts = append(parts, part{key: subject.FoldPart(log, len(parts))})
	}
	was.live, was.held = len(one.Parts), max(was.held, len(parts))
	one.Held = was.held
	for i := range parts {
		e, err := x.kv.Get(ctx, parts[i].key)
		if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil, fmt.Errorf("get part %d of a snapshot: %w", i, err)
		}
		if err == nil {
			parts[i].rev = e.Revision()
		}
	}
	return parts, nil
}

func (x *Snapshots[S]) putParts(ctx context.Context, parts []part) error {
	for i, p := range parts {
		if _, err := x.kv.Update(ctx, p.key, p.raw, p.rev); err != nil {
			return fmt.Errorf("store part %d of a snapshot: %w", i, err)
		}
	}
	return nil
}

// join reads the parts of a snapshot.
func (x *Snapshots[S]) join(ctx context.Context, log subject.Log, head *snapshot) (*snapshot, error) {
	if len(head.Parts) > maxParts {
		return nil, errHuge
	}
	var raw bytes.Buffer
	for i, want := range head.Parts {
		e, err := x.kv.Get(ctx, subject.FoldPart(log, i))
		if err != nil {
			return nil, fmt.Errorf("get part %d of a snapshot: %w", i, err)
		}
		if sum := sha256.Sum256(e.Value()); hex.EncodeToString(sum[:]) != want {
			return nil, fmt.Errorf("part %d is of another snapshot", i)
		}
		raw.Write(e.Value())
	}
	var s snapshot
	if err := unpack(raw.Bytes(), &s); err != nil {
		return nil, err
	}
	if s.Seq != head.Seq || s.Event != head.Event {
		return nil, errors.New("the parts are of another snapshot")
	}
	return &s, nil
}

// Erase removes the snapshot of a deleted log for good. It leaves a marker, so that a process that does not know of the
// deletion cannot store one later. It does nothing for a log that was too short for a snapshot.
func (x *Snapshots[S]) Erase(ctx context.Context, log subject.Log, end uint64) error {
	if x.kv == nil || end < x.every() {
		return nil
	}
	var at place
	var err error = jetstream.ErrKeyRevisionMismatch
	for try := 0; errors.Is(err, jetstream.ErrKeyRevisionMismatch); try++ {
		if _, at, err = x.get(ctx, log); err != nil && at.rev == 0 {
			return err
		}
		at.rev, err = x.mark(ctx, log, at.rev, try)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	for i := 0; err == nil && i < at.held; i++ {
		err = x.kv.Delete(ctx, subject.FoldPart(log, i))
	}
	if err != nil {
		return fmt.Errorf("erase the snapshot of %s: %w", log, err)
	}
	return nil
}

// mark replaces the snapshot with the revision by the marker of a deletion. After some tries without a snapshot to replace, an
// earlier call has left a marker.
func (x *Snapshots[S]) mark(ctx context.Context, log subject.Log, rev uint64, try int) (uint64, error) {
	key := subject.FoldKey(log)
	if rev == 0 && try < eraseTries {
		var err error
		if rev, err = x.kv.Update(ctx, key, nil, 0); err != nil {
			return 0, errors.Join(err, pause(ctx, erasePause))
		}
	}
	return rev, x.kv.Delete(ctx, key, jetstream.LastRevision(rev))
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
