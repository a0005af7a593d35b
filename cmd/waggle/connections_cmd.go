package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/waggle-dev/waggle/cmd/waggle/connections"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

type connectionsCmd struct {
	answerFlags
	Lagging bool   `help:"Only connections whose client does not read as fast as events come."`
	Gateway string `help:"Only connections with this gateway." placeholder:"INSTANCE"`
	Limit   uint   `help:"Maximum number of connections to print, up to 500 (100)." placeholder:"N"`
}

// Run implements the command.
func (c *connectionsCmd) Run(std streams) error {
	q := url.Values{}
	if c.Lagging {
		q.Set("lagging", "true")
	}
	if c.Gateway != "" {
		q.Set("gateway", c.Gateway)
	}
	if c.Limit > 0 {
		q.Set("limit", strconv.FormatUint(uint64(c.Limit), 10))
	}
	return c.ask(std, c.JSON, func(ctx context.Context, w *waggle.Client) (json.RawMessage, error) {
		return w.Get(ctx, q, "connections")
	}, connections.Write)
}
