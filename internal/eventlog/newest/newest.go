// Package newest reads streams from their end: pages of the newest messages of a filter, and single messages.
package newest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/nats-io/nats.go"
)

const (
	// spare is the number of messages that a read may return beyond those that are wanted.
	spare = 16
	// maxSteps bounds the reads of one page: each one halves or doubles the stretch of the stream that it covers, so
	// 64 are more than any stream takes.
	maxSteps = 64
)

// Page is a part of the messages of a filter, the newest first.
type Page struct {
	Entries []Entry
	Total   int  // of the filter
	More    bool // older ones follow: ask before the Sequence of the last one
}

// stretch is a part of the stream that a page reads: the messages of a filter.
type stretch struct {
	r      Reader
	filter string
	first  uint64 // sequence of the oldest message
	before uint64 // where the unread part ends
	beyond int    // number of messages after that end, as far as known
	single bool   // a request for each message costs less than to count all of them
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
	s.single = r.Large != nil && all.total >= want*cmp.Or(r.Large.Dear, dear)
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
	if s.single {
		found = distinct(found)
	}
	out.Entries = found[:min(len(found), want)]
	out.More = len(found) > want || len(found) > 0 && s.before > s.first
	return out, err
}

// distinct leaves the newest message of each subject: a replica that is behind may still have the one before. The newest come first.
func distinct(list []Entry) []Entry {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(e Entry) bool {
		was := seen[e.Subject]
		seen[e.Subject] = true
		return was
	})
}

// toNewest moves the end of the stretch after its newest message, which lies before the sequence.
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
	lacks, limit, over := want, 0, uint64(0)                            // over: a start after which are too many
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

// between returns the messages from the start to the end of the stretch, if they are not more than the limit.
func (s *stretch) between(ctx context.Context, start uint64, limit int) (out found, err error) {
	if s.single {
		return s.r.walk(ctx, s.filter, start, s.before, limit)
	}
	err = s.r.ask(ctx, get{Seq: start, NextFor: s.filter, Batch: limit}, limit+2, func(m *nats.Msg) bool {
		if status := m.Header.Get("Status"); len(m.Data) == 0 && status != "" {
			out.whole = status == "404" || status == "204" && number(m, "Nats-Num-Pending") == 0
			return false
		}
		left := int(min(number(m, "Nats-Num-Pending"), math.MaxInt32))
		one := entryOf(m)
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
