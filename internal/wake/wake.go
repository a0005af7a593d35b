// Package wake makes services read logs that reached an installation by other means than appends: a restore, or the move
// of a tenant from another cell.
package wake

import (
	"context"
	"fmt"

	"github.com/waggle-dev/waggle/internal/command"
	wire "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// wakers are the commands that make a service read a log, continue its work and set its timers. They change nothing if the work
// is done.
var wakers = map[id.Kind][]struct{ service, verb id.Name }{
	id.KindSession: {{wire.Pipeline, wire.Resume}, {wire.Session, wire.Expire}},
	id.KindMember:  {{wire.Member, wire.Resume}},
	id.KindTask:    {{wire.Task, wire.CheckTask}},
	id.KindTeam:    {{wire.Team, wire.WakeTeam}},
}

// Log sends the wakers of a log. occasion tells the wakers of different occasions apart.
func Log(ctx context.Context, s *command.Sender, log subject.Log, occasion string) error {
	for _, w := range wakers[log.Kind] {
		err := s.Send(ctx, wire.Command{
			ID:      fmt.Sprintf("%s-%s", occasion, w.verb),
			Service: w.service, Verb: w.verb, Tenant: log.Tenant, Key: log.Entity, Source: wire.SourceRestore,
		})
		if err != nil {
			return fmt.Errorf("wake %s: %w", log, err)
		}
	}
	return nil
}
