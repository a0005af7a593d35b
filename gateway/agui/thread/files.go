package thread

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// store stores the files that intents bring along as objects of the log.
func (t *Threads) store(ctx context.Context, c *edge.Client, log subject.Log, intents []dialect.Intent) error {
	for i := range intents {
		var files []event.File
		switch d := intents[i].Data.(type) {
		case dialect.SendMessage:
			files = d.Files
		case dialect.Answer:
			files = d.Files
		}
		if len(files) > 0 && !c.Principal().MayAct() {
			return fault.New(fault.Forbidden)
		}
		for n := range files { // the intent has the same list
			if err := t.g.Payloads.File(ctx, log, &files[n]); err != nil {
				return err
			}
		}
	}
	return nil
}
