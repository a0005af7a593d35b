package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/session/seal"
)

const (
	// MaxSigned bounds a signed state in bytes: a client sends it back in a frame of up to 256 KiB,
	// possibly encoded less compactly.
	MaxSigned = 160 << 10
	// leastConversation is where leaving out more of the conversation stops to help.
	leastConversation = 1 << 10
	// maxState bounds a readable state in bytes, as far as leaving out conversation helps: the rest
	// is a plan, which was one event (256 KiB).
	maxState = 256 << 10
	// defaultHistory and maxHistory bound the events of an export, and maxHistoryBytes
	// their size: state, signed state and history fit a message of the bus (1 MiB).
	defaultHistory  = 100
	maxHistory      = 1000
	maxHistoryBytes = 256 << 10
)

// portable is the part of a signed state that is signed. The snapshot is a text, so
// that no client on its way reads and writes its numbers.
type portable struct {
	SessionID string    `json:"session_id"`
	Tenant    id.Tenant `json:"tenant"`
	Seq       uint64    `json:"seq"` // how much the log knows: see folded.know
	Dialect   string    `json:"dialect"`
	Stage     string    `json:"stage"`
	Messages  int       `json:"message_count"`
	CreatedAt time.Time `json:"created_at"`
	Snapshot  string    `json:"snapshot"`
}

// export returns the present state of a session. Without a key it is unsigned.
func (d *responder) export(ctx context.Context, log subject.Log) (event.StateExportedData, error) {
	f, out, err := d.describe(ctx, log)
	if err == nil {
		out.Signed, err = d.sign(log, f, out.ExportedAt)
	}
	return out, err
}

// describe returns the state of a session for reading, with the fold that it comes from.
func (d *responder) describe(ctx context.Context, log subject.Log) (*folded, event.StateExportedData, error) {
	now := d.now().UTC()
	out := event.StateExportedData{ExportedAt: now, ValidUntil: now.Add(seal.Valid)}
	f, err := foldLog(ctx, d.log, log)
	if err != nil {
		return nil, out, fmt.Errorf("export session %s: %w", log.Entity, err)
	}
	out.Seq = f.state.Seq
	snap := f.state.Snapshot(maxMemoryBytes)
	for limit := maxMemoryBytes; ; limit /= 2 {
		out.State, err = plainjson.Marshal(describe(&f.state, snap, limit))
		if err != nil {
			return nil, out, fmt.Errorf("encode the state of session %s: %w", log.Entity, err)
		}
		if len(out.State) <= maxState || limit == 0 {
			break
		}
	}
	out.Hash, err = seal.Hash(out.State)
	return f, out, err
}

// sign returns the signed state, with as much of the conversation as fits. It is
// nil without a key, and STATE_TOO_BIG if what must be there does not fit.
func (d *responder) sign(log subject.Log, f *folded, now time.Time) (json.RawMessage, error) {
	if len(d.keys) == 0 {
		return nil, nil
	}
	st := &f.state
	for limit := MaxSigned; ; limit /= 2 {
		if limit < leastConversation {
			limit = 0
		}
		snap := st.Snapshot(limit)
		text, err := plainjson.Marshal(snap)
		if err != nil {
			return nil, fmt.Errorf("encode the snapshot of session %s: %w", log.Entity, err)
		}
		body, err := plainjson.Marshal(portable{
			SessionID: log.Entity.String(), Tenant: log.Tenant, Seq: f.upTo, Dialect: st.Dialect,
			Stage: snap.Stage(), Messages: snap.Messages, CreatedAt: st.Created, Snapshot: string(text),
		})
		if err != nil {
			return nil, fmt.Errorf("encode the export of session %s: %w", log.Entity, err)
		}
		signed, err := d.keys.Seal(body, now)
		switch {
		case err != nil:
			return nil, err
		case len(signed) <= MaxSigned:
			return signed, nil
		case limit == 0:
			return nil, fault.New(fault.StateTooBig)
		}
	}
}

// errEnough ends a read.
var errEnough = errors.New("enough")

// history returns the newest events up to seq, oldest first: at most n, and fewer if
// they are large.
func (d *responder) history(ctx context.Context, log subject.Log, seq uint64, n int) ([]json.RawMessage, error) {
	switch {
	case n <= 0:
		n = defaultHistory
	case n > maxHistory:
		n = maxHistory
	}
	after := eventlog.Cursor{}
	if seq > uint64(n) {
		after.Seq = seq - uint64(n)
	}
	out, size := []json.RawMessage{}, 0
	err := readAll(ctx, d.log, log, after, func(e *eventlog.Entry) error {
		if e.Sequence > seq {
			return errEnough
		}
		raw := eventdata.RawForPeople(e.Type, e.Raw)
		out, size = append(out, raw), size+len(raw)
		for size > maxHistoryBytes && len(out) > 1 {
			size -= len(out[0])
			out = out[1:]
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("read the history of session %s: %w", log.Entity, err)
	}
	return out, nil
}

func decodeSnapshot(raw []byte) (conversation.Snapshot, error) {
	var snap conversation.Snapshot
	if err := json.Unmarshal(raw, &snap); err != nil {
		return snap, fmt.Errorf("decode a session's snapshot: %w", err)
	}
	return snap, nil
}
