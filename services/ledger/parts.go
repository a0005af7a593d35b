package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
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
