package waggle

import (
	"context"
	"time"
)

// OnRest replaces the pauses of a client.
func OnRest(c *Client, f func(context.Context, time.Duration) bool) { c.rest = f }
