package waggle

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// List returns all pages of a list of the HTTP API as one answer. The member items of an answer holds
// its part of the list; the other members are those of the first page.
func (c *Client) List(ctx context.Context, items string, parts ...string) (json.RawMessage, error) {
	var whole map[string]json.RawMessage
	all := []json.RawMessage{}
	for query := (url.Values{}); ; {
		raw, err := c.request(ctx, http.MethodGet, nil, query, parts...)
		if err != nil {
			return nil, err
		}
		var page struct {
			Next string `json:"next"`
			More bool   `json:"more"`
		}
		var members map[string]json.RawMessage
		var some []json.RawMessage
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("waggle: read a page: %w", err)
		}
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, fmt.Errorf("waggle: read a page: %w", err)
		}
		if err := json.Unmarshal(members[items], &some); len(members[items]) > 0 && err != nil {
			return nil, fmt.Errorf("waggle: read %s of a page: %w", items, err)
		}
		if whole == nil {
			whole = members
		}
		all = append(all, some...)
		if !page.More || page.Next == "" || page.Next == query.Get("before") {
			break
		}
		query.Set("before", page.Next)
	}
	joined, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("waggle: join the pages: %w", err)
	}
	whole[items] = joined
	delete(whole, "next")
	delete(whole, "more")
	return json.Marshal(whole)
}
