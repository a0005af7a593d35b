package entry

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// ErrUnreadable is wrapped by errors about a stored message that is not an event of its log.
var ErrUnreadable = errors.New("stored message is not an event of this log")

// Entry is one stored event of a log. All viewers of the log share it, so it must not be modified.
type Entry struct {
	event.Event        // Stream and From are always set
	Raw         []byte // the stored JSON, sequence included

	memo atomic.Pointer[memo]
}

// memo is one remembered value of an entry. The list only grows, at its head.
type memo struct {
	key  any
	once sync.Once
	val  any
	next *memo
}

// Cursor returns the position just after the entry.
func (e *Entry) Cursor() Cursor { return Cursor{Seq: e.Sequence, Stream: e.Stream} }

// Memo returns build's result for the key. build runs once per entry and key; concurrent callers wait for it. key
// must be comparable. Memo is meant for a handful of keys (the dialects of a gateway).
func (e *Entry) Memo(key any, build func() any) any {
	head := e.memo.Load()
	for m := head; m != nil; m = m.next {
		if m.key == key {
			m.once.Do(func() { m.val = build() })
			return m.val
		}
	}
	e.memo.CompareAndSwap(head, &memo{key: key, next: head})
	return e.Memo(key, build) // added by this call or by another: search again
}

// lenient accepts stored data unchecked: its writer has checked it. With it the decoder needs 40 % of the time of
// encoding/json.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// Encode returns the JSON form under which an event is stored.
func Encode(ev event.Event) ([]byte, error) {
	raw, err := json.Marshal(ev, lenient)
	if err != nil {
		return nil, fmt.Errorf("encode %s event %s: %w", ev.Type, ev.ID, err)
	}
	return raw, nil
}

// Decode returns the entry stored as raw at the stream's sequence. log is the name that the event must carry;
// seq is the sequence that the headers claim. The entry keeps raw.
func Decode(log string, seq, stream uint64, raw []byte) (*Entry, error) {
	e := &Entry{Raw: raw}
	if !scan(raw, log, &e.Event) {
		e.Event = event.Event{}
		if err := json.Unmarshal(raw, &e.Event, lenient); err != nil {
			return nil, fmt.Errorf("%w: %s at stream sequence %d: %w", ErrUnreadable, log, stream, err)
		}
	}
	if e.Sequence == 0 || e.Sequence != seq || e.Subject != log {
		return nil, fmt.Errorf("%w: %s at stream sequence %d holds %s seq %d, headers say %d",
			ErrUnreadable, log, stream, e.Subject, e.Sequence, seq)
	}
	e.Stream, e.From = stream, e.Sequence
	return e, nil
}
