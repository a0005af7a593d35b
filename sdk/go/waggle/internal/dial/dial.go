// Package dial holds the connection settings that the clients of all dialects share.
package dial

import (
	"context"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/sdk/go/link"
)

// giveUp is how long the server may stay away: longer than a rolling restart.
const giveUp = 2 * time.Minute

// Options are those that the clients of all dialects have; see any of them.
type Options struct {
	URL, Token  string
	TokenSource func(ctx context.Context) (string, error)
	HTTPClient  *http.Client
	Next        func() string
}

// Link returns the options of a link that fails if its very first attempt does. down is
// its OnDown and may be nil.
func (o Options) Link(down func(error)) link.Options {
	return link.Options{
		URL: o.URL, Next: o.Next, Header: link.Header(o.Token), Token: o.TokenSource, HTTPClient: o.HTTPClient,
		GiveUp: giveUp, Hasty: true, OnDown: down,
	}
}
