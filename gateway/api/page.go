package api

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// defaultItems and maxItems bound the items of a page: more than a person looks at, and few enough to be encoded within
	// some milliseconds.
	defaultItems = 200
	maxItems     = 1000
)

// page is a part of a list.
type page[T any] struct {
	items []T
	next  string // position of the next page; empty = no more items
}

// pageOf returns the page of a list that the request asks for. The key of an item is its place: the list is in the order of
// its keys, which differ. A page begins behind the key that the parameter before holds, so that items which came or
// went meanwhile shift nothing.
func pageOf[T any](r *http.Request, items []T, key func(T) string) (page[T], error) {
	limit, err := number(r, "limit", defaultItems, maxItems)
	if err != nil {
		return page[T]{}, err
	}
	after, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("before"))
	if err != nil {
		return page[T]{}, fault.Newf(fault.InvalidField, "before must be the next of a page.").At("before").Wrap(err)
	}
	slices.SortFunc(items, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	p := page[T]{items: []T{}}
	room := maxPage
	for _, one := range items {
		if key(one) <= string(after) {
			continue
		}
		b, err := json.Marshal(one)
		if err != nil {
			return page[T]{}, fmt.Errorf("encode an item: %w", err)
		}
		if room -= len(b) + 1; len(p.items) == limit || room < 0 && len(p.items) > 0 {
			p.next = base64.RawURLEncoding.EncodeToString([]byte(key(p.items[len(p.items)-1])))
			return p, nil
		}
		p.items = append(p.items, one)
	}
	return p, nil
}

// placeOf returns the place in the index that the parameter before names, 0 for the end.
func placeOf(r *http.Request) (uint64, error) {
	return index.ParsePlace(r.URL.Query().Get("before"))
}
