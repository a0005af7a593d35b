package edge

import (
	"context"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// rights: only a client that may act has anything done. Its own position in a log also a viewer may acknowledge.
func rights(_ context.Context, c *Client, a *Act) error {
	if !c.MayAct() && a.Verb != command.Ack && a.Verb != command.AckClient {
		return fault.New(fault.Forbidden)
	}
	return nil
}

// ownTenant: nothing is done in the tenant of another.
func ownTenant(_ context.Context, c *Client, a *Act) error {
	if a.Tenant != c.Principal().Tenant {
		return fault.New(fault.Forbidden)
	}
	return nil
}
