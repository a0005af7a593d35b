package request

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Bounds of the items of a page: more than a person looks at, and few enough to be encoded within some milliseconds.
const (
	DefaultItems = 200
	MaxItems     = 1000
)

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	Next  string // position of the next page; empty = no more items
}

// PageOf returns the page of a list that the request asks for. The key of an item is its place: the list is in the order of
// its keys, which differ. A page begins behind the key that the parameter before holds, so that items which came or
// went meanwhile shift nothing.
func PageOf[T any](r *http.Request, items []T, key func(T) string) (Page[T], error) {
	limit, err := Number(r, "limit", DefaultItems, MaxItems)
	if err != nil {
		return Page[T]{}, err
	}
	after, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("before"))
	if err != nil {
		return Page[T]{}, fault.Newf(fault.InvalidField, "before must be the next value of an earlier page.").At("before").Wrap(err)
	}
	slices.SortFunc(items, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	p := Page[T]{Items: []T{}}
	room := answer.MaxPage
	for _, one := range items {
		if key(one) <= string(after) {
			continue
		}
		b, err := json.Marshal(one)
		if err != nil {
			return Page[T]{}, fmt.Errorf("encode an item: %w", err)
		}
		if room -= len(b) + 1; len(p.Items) == limit || room < 0 && len(p.Items) > 0 {
			p.Next = base64.RawURLEncoding.EncodeToString([]byte(key(p.Items[len(p.Items)-1])))
			return p, nil
		}
		p.Items = append(p.Items, one)
	}
	return p, nil
}
