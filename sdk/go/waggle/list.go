package waggle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
)

// Some says which items of a list are wanted.
type Some struct {
	Query url.Values                 // the filters of the server
	Fits  func(json.RawMessage) bool // nil: all fit
	Most  int                        // 0: all
}

// List returns all pages of a list of the HTTP API as one answer. The member items of an answer holds
// its part of the list; the other members are those of the first page.
func (c *Client) List(ctx context.Context, items string, parts ...string) (json.RawMessage, error) {
	return c.ListSome(ctx, Some{}, items, parts...)
}

// ListSome is List for some of the items. It reads as many pages as it needs; the member more says that it left some unread.
func (c *Client) ListSome(ctx context.Context, some Some, items string, parts ...string) (json.RawMessage, error) {
	var whole map[string]json.RawMessage
	all := []json.RawMessage{}
	var full, left bool
	query := url.Values{}
	maps.Copy(query, some.Query)
	for {
		raw, err := c.Get(ctx, query, parts...)
		if err != nil {
			return nil, err
		}
		p, err := pageOf(raw, items)
		if err != nil {
			return nil, err
		}
		if whole == nil {
			whole = p.members
		}
		more := p.More && p.Next != "" && p.Next != query.Get("before")
		if all, full, left = some.take(all, p.items); full {
			left = left || more
			break
		}
		if !more {
			break
		}
		query.Set("before", p.Next)
	}
	joined, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("waggle: join the pages: %w", err)
	}
	whole[items] = joined
	delete(whole, "next")
	if delete(whole, "more"); left {
		whole["more"] = json.RawMessage("true")
	}
	return json.Marshal(whole)
}

// take appends the items that fit. full says that no more are wanted, and left that some of these items were not looked at.
func (s Some) take(all, items []json.RawMessage) (taken []json.RawMessage, full, left bool) {
	for i, one := range items {
		if s.Fits == nil || s.Fits(one) {
			all = append(all, one)
		}
		if s.Most > 0 && len(all) == s.Most {
			return all, true, i < len(items)-1
		}
	}
	return all, false, false
}

// page is one answer of a list.
type page struct {
	Next string `json:"next"`
	More bool   `json:"more"`

	members map[string]json.RawMessage
	items   []json.RawMessage
}

func pageOf(raw json.RawMessage, items string) (p page, err error) {
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("waggle: read a page: %w", err)
	}
	if err := json.Unmarshal(raw, &p.members); err != nil {
		return p, fmt.Errorf("waggle: read a page: %w", err)
	}
	if err := json.Unmarshal(p.members[items], &p.items); len(p.members[items]) > 0 && err != nil {
		return p, fmt.Errorf("waggle: read %s of a page: %w", items, err)
	}
	return p, nil
}
