package sessions

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// open names a session and tells the client that it is there. Nothing of it is stored until the
// first frame that needs it.
func (m *Multi) open(req myagent.Request) error {
	if !m.c.Client().MayAct() {
		return fault.New(fault.Forbidden)
	}
	if !m.g.Reachable() {
		return fault.New(fault.BusUnavailable)
	}
	log := subject.Log{Tenant: m.c.Client().Principal().Tenant, Kind: id.KindSession}
	var err error
	if log.Entity, err = edge.NameSession(m.c.Client().Principal(), req.Open.Preferences); err != nil {
		return err
	}
	if err := m.roomFor(log); err != nil {
		return err
	}
	named, _ := id.Stamp(log.Entity.String())
	created, err := event.New(log, "created", m.g.Source, named, event.SessionCreatedData{
		Dialect: m.c.Client().Protocol(), Principal: m.c.Client().Principal().Subject, Preferences: req.Open.Preferences,
	})
	if err != nil {
		return err
	}
	created.Sequence, created.From = 1, 1 // as it will be: nothing comes before it
	a := &attached{
		log: log, codec: m.in(req.Open.Language), client: req.Open.ClientID,
		unopened: edge.NewUnopened(log, req.Open.Preferences), told: true,
	}
	m.show(a, eventlog.Cursor{}, func(o *stream.Opening) {
		for _, frame := range a.codec.Encode(created) {
			o.Say(func() []byte { return frame })
		}
	})
	return nil
}

// ensure makes the session for commands, if it does not exist yet.
func (m *Multi) ensure(ctx context.Context, a *attached, cmds ...command.Command) error {
	if a.unopened == nil {
		return nil
	}
	return a.unopened.Open(ctx, m.c, m.g.ReadyTimeout, m.reply, cmds...)
}
