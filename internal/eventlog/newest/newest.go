// Package newest reads streams from their end: pages of the newest messages of a filter, and single messages.
package newest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// spare is the number of messages that a read may return beyond those that are wanted.
	spare = 16
	// maxSteps bounds the reads of one page: each one halves or doubles the stretch of the stream that it covers, so
	// 64 are more than any stream takes.
	maxSteps = 64
	// endPatience bounds the wait for the leader of a large stream.
	endPatience = time.Second
)

// ErrNone means that the stream does not have the message.
var ErrNone = errors.New("no such message")

// Reader reads a stream that allows direct gets. It is safe for concurrent use.
type Reader struct {
	Log    *eventlog.Store // whose requests it shares; open as long as the reader is used
	Stream string

	// Large makes reads of a large stream cheaper; nil: it is not large.
	Large *Large
}

// Large is what a reader of a large stream has besides: the server goes through all subjects of a filter to find its newest message
// and to count its messages, 8 ms each with 100,000.
type Large struct {
	End    func(ctx context.Context) (End, error)
	Counts *Counts
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

// Page is a part of the messages of a filter, the newest first.
type Page struct {
	Entries []Entry
	Total   int  // of the filter
	More    bool // older ones follow: ask before the Sequence of the last one
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
	return Entry{m.Header.Get(nats.JSSubject), number(m, nats.JSSequence), m.Data}, nil
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

// stretch is a part of the stream that a page reads: the messages of a filter.
type stretch struct {
	r      Reader
	filter string
	first  uint64 // sequence of the oldest message
	before uint64 // where the unread part ends
	beyond int    // number of messages behind that end, as far as known
	tail   bool   // the newest message of the filter may lie far before that end
}

// Read returns the newest messages of a filter that lie before the sequence, want of them at most; 0 means the end of the
// stream. It reads backwards from there and nothing else, whatever the number of messages.
func (r Reader) Read(ctx context.Context, filter string, before uint64, want int) (out Page, err error) {
	s := stretch{r: r, filter: filter, before: before}
	var end End
	if before == 0 {
		end = r.end(ctx)
	}
	all, err := r.census(ctx, filter, end.Created)
	if err != nil || all.total == 0 {
		return out, err
	}
	s.first, out.Total = all.first, all.total
	switch {
	case before > 0:
	case end != End{}:
		s.tail, s.before = true, end.Sequence+1
	default:
		if err := s.toNewest(ctx, math.MaxUint64); err != nil { // any replica knows
			return out, err
		}
	}
	found, err := s.read(ctx, want+1, out.Total)
	out.Entries = found[:min(len(found), want)]
	out.More = len(found) > want || len(found) > 0 && s.before > s.first
	return out, err
}

// end returns the end of a large stream, which the server knows sooner than the newest message of a filter. It returns the zero value if
// the stream is not large, or its leader does not answer.
func (r Reader) end(ctx context.Context) End {
	if r.Large == nil {
		return End{}
	}
	within, cancel := context.WithTimeout(ctx, endPatience)
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

// toNewest moves the end of the stretch behind its newest message, which lies before the sequence.
func (s *stretch) toNewest(ctx context.Context, before uint64) error {
	last, err := s.r.one(ctx, get{LastFor: s.filter})
	switch {
	case errors.Is(err, ErrNone):
		s.before = s.first // all are gone since they were counted
	case err != nil:
		return err
	default:
		s.before = max(min(before, number(last, nats.JSSequence)+1), s.first)
	}
	return nil
}

// read returns the newest messages of the stretch, about want of them if it has as many.
func (s *stretch) read(ctx context.Context, want, total int) ([]Entry, error) {
	var out []Entry
	if s.before <= s.first {
		return nil, nil
	}
	// As if the messages lay evenly. As many sequences as are wanted hold no more messages than one read returns.
	span := s.before - s.first
	width := max(uint64(want), span/uint64(max(total, 1))*uint64(want)) //nolint:gosec // positive
	lacks, limit, over := want, 0, uint64(0)                            // over: a start behind which are too many
	for step := 0; lacks > 0 && s.before > s.first && step < maxSteps; step++ {
		start := s.first
		if s.before-s.first > width {
			start = s.before - width
		}
		limit = max(limit, lacks+lacks/4+spare)
		part, err := s.between(ctx, start, limit)
		if err != nil {
			return nil, err
		}
		if !part.whole {
			if limit, over = 0, start; part.has <= 2*want {
				limit = part.has + spare
			} else {
				width = max(scaled(s.before-start, lacks, part.has), 1)
			}
			continue
		}
		if s.tail {
			s.tail = false
			if len(part.messages) == 0 {
				if err := s.toNewest(ctx, start); err != nil {
					return nil, err
				}
				limit = 0
				continue
			}
		}
		if limit, width = 0, wider(width, lacks, len(part.messages)); over > 0 && over < start {
			width = min(width, max((start-over)/2, 1))
		}
		slices.Reverse(part.messages)
		out, s.before = append(out, part.messages...), start
		lacks = want - len(out)
	}
	return out[:min(len(out), want)], nil
}

// wider returns the width for what still lacks after a stretch of the width had n of the messages.
func wider(width uint64, lacks, n int) uint64 {
	if n == 0 {
		return 4 * width
	}
	return max(min(scaled(width, max(lacks-n, 1), n), 4*width), spare)
}

// scaled returns the width that holds a little more than the wanted messages, if the given one has n of them.
func scaled(width uint64, wanted, n int) uint64 {
	return width * uint64(wanted+wanted/4+1) / uint64(n) //nolint:gosec // positive
}

// found is what one read of a stretch returned.
type found struct {
	messages []Entry // oldest first
	whole    bool    // these are all
	has      int     // number of messages of the stretch, or more
}

// between returns the messages from the start to the end of the stretch, if they are not more than the limit.
func (s *stretch) between(ctx context.Context, start uint64, limit int) (out found, err error) {
	err = s.r.ask(ctx, get{Seq: start, NextFor: s.filter, Batch: limit}, limit+2, func(m *nats.Msg) bool {
		if status := m.Header.Get("Status"); len(m.Data) == 0 && status != "" {
			out.whole = status == "404" || status == "204" && number(m, "Nats-Num-Pending") == 0
			return false
		}
		left := int(min(number(m, "Nats-Num-Pending"), math.MaxInt32))
		one := Entry{m.Header.Get(nats.JSSubject), number(m, nats.JSSequence), m.Data}
		if one.Sequence >= s.before {
			out.whole, s.beyond = true, left+1
			return false
		}
		out.messages = append(out.messages, one)
		out.has = len(out.messages) + max(left-s.beyond, 0)
		return true
	})
	return out, err
}
