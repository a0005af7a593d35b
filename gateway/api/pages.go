package api

import (
	"strconv"

	"github.com/waggle-dev/waggle/gateway/answer"
)

// minScan is the least number of entries that one read returns where not all of them are shown.
const minScan = 100

// gathered fills a page with several answers of a service, each of which holds as many items as fit into one of its messages. part
// returns at most some items from a position, and the position of those after them; the last part has no position.
func gathered[T any](p *parts, from string, limit int, part func(from string, limit int) ([]T, string, error)) ([]T, string, error) {
	items, room := []T{}, answer.MaxPage
	for {
		some, next, err := part(from, limit-len(items))
		if err != nil {
			return nil, "", err
		}
		items = append(items, some...)
		room -= int(p.edge.Bus.NATS().MaxPayload()) // of the largest answer
		if next == "" || next == from || len(items) >= limit || room <= 0 {
			return items, next, nil
		}
		from = next
	}
}

// search looks for the items of a page in an index, backwards. A filter that few entries pass makes a page short or empty.
type search[T any] struct {
	limit        int // items of the page
	least        int // entries of the first read, then twice as many each time
	most, atOnce int // entries of all reads, and of one
	read         func(before uint64, entries int) (stretch[T], error)
	place        func(*T) uint64 // of an entry
	take         func(*T) bool   // puts an entry on the page, if it belongs there
}

// stretch is what a search reads at once.
type stretch[T any] struct {
	entries []T
	end     uint64 // place of the last entry that was looked at, even if it is not among the entries; 0: the last of these
	looked  int    // number of the entries that were looked at
	more    bool   // others follow
}

// from fills the page with the items before a place. The next page is before the place that it returns; empty: the page is the last.
func (s search[T]) from(before uint64) (next string, err error) {
	found := 0
	for scanned, least := 0, s.least; ; least = min(2*least, s.atOnce) {
		part, err := s.read(before, min(max(s.limit-found, least), s.most-scanned))
		if err != nil {
			return "", err
		}
		for i := range part.entries {
			if found == s.limit {
				return strconv.FormatUint(before, 10), nil
			}
			one := &part.entries[i]
			if before = s.place(one); s.take(one) {
				found++
			}
		}
		if part.end != 0 {
			before = part.end
		}
		switch scanned += part.looked; {
		case !part.more:
			return "", nil
		case found == s.limit || scanned >= s.most:
			return strconv.FormatUint(before, 10), nil
		}
	}
}
