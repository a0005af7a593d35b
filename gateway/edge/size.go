package edge

import (
	"context"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// MaxCommand is the most bytes that the data of one command may have: it goes into an event
// of at most 256 KiB, with everything else that the event says.
const MaxCommand = 160 << 10

// size: the data of a command fits into an event. Requests have bounds of their own.
func size(_ context.Context, _ *Client, a *Act) error {
	if !a.Request && len(a.Data) > MaxCommand {
		return fault.Newf(fault.InvalidField, "The message is too long. Send at most %d KB of text at once.", MaxCommand>>10)
	}
	return nil
}
