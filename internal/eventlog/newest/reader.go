package newest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// endMaxWait bounds the wait for the leader of a large stream.
const endMaxWait = time.Second

// ErrNone means that the stream does not have the message.
var ErrNone = errors.New("no such message")

// Reader reads a stream that allows direct gets. It is safe for concurrent use.
type Reader struct {
	Log    *eventlog.Store // whose requests it shares; open as long as the reader is used
	Stream string

	// Large makes reads of a large stream cheaper; nil: it is not large.
	Large *Large
}

// Large is what a reader has besides of a large stream with one message a subject: the server visits all subjects of a filter to
// find its newest message and to count its messages, 8 ms each with 100,000.
type Large struct {
	End    func(ctx context.Context) (End, error)
	Counts *Counts
	// Dear is the number of messages whose count costs as much as a request for one; 0: 250.
	Dear int
}

// End is where a stream ends.
type End struct {
	Sequence uint64    // of its last message
	Created  time.Time // of the stream: one that was deleted and made again begins anew
}

// Entry is a message of the stream.
type Entry struct {
	Subject  string
	Sequence uint64
	Data     []byte
}

// get is the body of a direct get.
type get struct {
	Seq     uint64 `json:"seq,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
	Batch   int    `json:"batch,omitempty"`
}

// Last returns the newest message of a subject, or ErrNone.
func (r Reader) Last(ctx context.Context, subject string) (Entry, error) {
	return r.only(ctx, get{LastFor: subject})
}

// At returns the message with a sequence, or ErrNone.
func (r Reader) At(ctx context.Context, sequence uint64) (Entry, error) {
	return r.only(ctx, get{Seq: sequence})
}

func (r Reader) only(ctx context.Context, q get) (Entry, error) {
	m, err := r.one(ctx, q)
	if err != nil {
		return Entry{}, err
	}
	return entryOf(m), nil
}

func entryOf(m *nats.Msg) Entry {
	return Entry{m.Header.Get(nats.JSSubject), number(m, nats.JSSequence), m.Data}
}

// one returns the message that the request asks for, ErrNone if the stream has none.
func (r Reader) one(ctx context.Context, q get) (*nats.Msg, error) {
	var out *nats.Msg
	if err := r.ask(ctx, q, 1, func(m *nats.Msg) bool {
		out = m
		return false
	}); err != nil {
		return nil, err
	}
	if status := out.Header.Get("Status"); len(out.Data) == 0 && status != "" {
		if status == "404" {
			return nil, ErrNone
		}
		return nil, fmt.Errorf("read the stream %s: %s %s", r.Stream, status, out.Header.Get("Description"))
	}
	return out, nil
}

func (r Reader) ask(ctx context.Context, q get, room int, visit func(*nats.Msg) bool) error {
	body, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("encode a read: %w", err)
	}
	if err := r.Log.DirectGet(ctx, r.Stream, body, room, visit); err != nil {
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("read the stream %s: %w", r.Stream, err))
	}
	return nil
}

func number(m *nats.Msg, header string) uint64 {
	n, err := strconv.ParseUint(m.Header.Get(header), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// end returns the end of a large stream, which the server knows sooner than the newest message of a filter. It returns the zero value if
// the stream is not large, or its leader does not answer.
func (r Reader) end(ctx context.Context) End {
	if r.Large == nil {
		return End{}
	}
	within, cancel := context.WithTimeout(ctx, endMaxWait)
	defer cancel()
	end, err := r.Large.End(within)
	if err != nil {
		return End{}
	}
	return end
}

// census returns the number of messages of a filter. That of a large stream may be a second old, or a minute if it has many;
// a first message shows at once. Counts of another stream of the same name, which was made at another time, are not taken; the zero time
// stands for any.
func (r Reader) census(ctx context.Context, filter string, stream time.Time) (census, error) {
	count := func(ctx context.Context) (out census, err error) {
		err = r.ask(ctx, get{Seq: 1, NextFor: filter, Batch: 1}, 2, func(m *nats.Msg) bool {
			if len(m.Data) == 0 && m.Header.Get("Status") != "" {
				return false
			}
			out.first, out.total = number(m, nats.JSSequence), int(number(m, "Nats-Num-Pending"))+1 //nolint:gosec // far fewer than 2^63
			return true
		})
		return out, err
	}
	if r.Large == nil {
		return count(ctx)
	}
	return r.Large.Counts.of(ctx, filter, stream, count)
}
