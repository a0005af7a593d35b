package binding

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// StoreFiles stores the files that intents bring along as objects of the log.
func (g *Gateway) StoreFiles(ctx context.Context, c *edge.Client, log subject.Log, intents []dialect.Intent) error {
	for _, intent := range intents {
		var files []event.File
		switch d := intent.Data.(type) {
		case dialect.SendMessage:
			files = d.Files
		case dialect.Answer:
			files = d.Files
		}
		if len(files) > 0 && !c.Principal().MayAct() {
			return fault.New(fault.Forbidden)
		}
		if err := g.Payloads.Files(ctx, log, files); err != nil { // the intent has the same list
			return err
		}
	}
	return nil
}
