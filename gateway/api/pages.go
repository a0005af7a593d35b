package api

import (
	"strconv"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
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

// next returns where the page after one begins, as the API has it; empty: that one is the last.
func next(place uint64) string {
	if place == 0 {
		return ""
	}
	return strconv.FormatUint(place, 10)
}

// verdict is that of a search about an entry that is on the page or does not belong there.
func verdict(taken bool) (newest.Verdict, error) {
	if taken {
		return newest.Taken, nil
	}
	return newest.Skipped, nil
}
