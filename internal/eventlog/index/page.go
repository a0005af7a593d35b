package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// spare is the number of messages that a read may return beyond those that are wanted.
	spare = 16
	// maxSteps bounds the reads of one page: each one halves or doubles the stretch of the stream that it covers, so
	// 64 are more than any stream takes.
	maxSteps = 64
)

// Stored is a summary and its place in the index.
type Stored struct {
	Log subject.Log
	Summary
	Sequence uint64
}

// Page is a part of the summaries of a tenant, the newest change first.
type Page struct {
	Summaries []Stored
	Total     int  // of the tenant
	More      bool // older ones follow: ask before the Sequence of the last one
}

// stretch is a part of the index that a page reads: the messages of a filter.
type stretch struct {
	x      *Index
	filter string
	first  uint64 // sequence of the oldest message
	before uint64 // where the unread part ends
	beyond int    // number of messages behind that end, as far as known
	tail   bool   // the newest message of the filter may lie far before that end
}

// Page returns the newest summaries of a tenant's logs of the kind that lie before the sequence, want of them at most;
// 0 means the end of the index. It reads backwards from there and nothing else, whatever the number of summaries. A
// summary that does not change keeps its place, so pages that follow each other have each of these once.
func (x *Index) Page(ctx context.Context, t id.Tenant, k id.Kind, before uint64, want int) (Page, error) {
	p, err := x.read(ctx, subject.IndexFilter(t, k), before, want)
	out := Page{Total: p.total, More: p.more}
	for _, e := range p.entries {
		one, broken := e.summary()
		if broken != nil {
			return out, broken
		}
		out.Summaries = append(out.Summaries, one)
	}
	return out, err
}

// ParsePlace reads the member next of a page, which is a place in the index. The empty text is the end of the index, 0.
func ParsePlace(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return 0, fault.Newf(fault.InvalidField, "before must be the next of a page.").At("before").Wrap(err)
	}
	return n, nil
}

// entry is a message of the index.
type entry struct {
	subject  string
	sequence uint64
	data     []byte
}

// entries are a part of the messages of a filter, the newest first.
type entries struct {
	entries []entry
	total   int  // of the filter
	more    bool // older ones follow
}

// read returns the newest entries of a filter that lie before the sequence.
func (x *Index) read(ctx context.Context, filter string, before uint64, want int) (out entries, err error) {
	s := stretch{x: x, filter: filter, before: before}
	all, err := x.census(ctx, filter)
	if err != nil || all.total == 0 {
		return out, err
	}
	s.first, out.total = all.first, all.total
	if before == 0 {
		s.tail = true
		if s.before, err = x.end(ctx); err != nil { // the stream has no leader: its replicas know
			s.tail, err = false, s.toNewest(ctx, math.MaxUint64)
		}
		if err != nil {
			return out, err
		}
	}
	found, err := s.read(ctx, want+1, out.total)
	out.entries = found[:min(len(found), want)]
	out.more = len(found) > want || len(found) > 0 && s.before > s.first
	return out, err
}

// read returns the newest messages of the stretch, about want of them if it has as many.
func (s *stretch) read(ctx context.Context, want, total int) ([]entry, error) {
	var out []entry
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

// toNewest moves the end of the stretch to the newest message, which lies before the sequence. The server goes through all subjects
// of the filter to find it.
func (s *stretch) toNewest(ctx context.Context, before uint64) error {
	newest, err := s.x.one(ctx, get{LastFor: s.filter})
	switch {
	case errors.Is(err, errNone):
		s.before = s.first // all are gone since they were counted
	case err != nil:
		return err
	default:
		s.before = max(min(before, number(newest, nats.JSSequence)+1), s.first)
	}
	return nil
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
	messages []entry // oldest first
	whole    bool    // these are all
	has      int     // number of messages of the stretch, or more
}

// between returns the messages from the start to the end of the stretch, if they are not more than the limit.
func (s *stretch) between(ctx context.Context, start uint64, limit int) (out found, err error) {
	err = s.x.ask(ctx, get{Seq: start, NextFor: s.filter, Batch: limit}, limit+2, func(m *nats.Msg) bool {
		if status := m.Header.Get("Status"); len(m.Data) == 0 && status != "" {
			out.whole = status == "404" || status == "204" && number(m, "Nats-Num-Pending") == 0
			return false
		}
		left := int(min(number(m, "Nats-Num-Pending"), math.MaxInt32))
		one := entry{m.Header.Get(nats.JSSubject), number(m, nats.JSSequence), m.Data}
		if one.sequence >= s.before {
			out.whole, s.beyond = true, left+1
			return false
		}
		out.messages = append(out.messages, one)
		out.has = len(out.messages) + max(left-s.beyond, 0)
		return true
	})
	return out, err
}

func (e entry) summary() (Stored, error) {
	log, err := subject.ParseIndex(e.subject)
	if err != nil {
		return Stored{}, err
	}
	out := Stored{Log: log, Sequence: e.sequence}
	if err := json.Unmarshal(e.data, &out.Summary); err != nil {
		return out, fmt.Errorf("decode the summary of %s: %w", log, err)
	}
	return out, nil
}
