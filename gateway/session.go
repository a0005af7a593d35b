package gateway

import (
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// openID is the id of the command that makes a session: asking twice makes one.
const openID = "open"

// resolve makes out the session of the socket and the position from which it wants
// to see the log. A session of somebody else is answered exactly as one that does
// not exist.
func (c *conn) resolve() (eventlog.Cursor, error) {
	p := c.who()
	c.session = subject.Log{Tenant: p.Tenant, Kind: id.KindSession}
	if !c.continues {
		c.created = true
		if c.resumes {
			return eventlog.Cursor{}, fault.Newf(fault.CursorInvalid, "after needs a session. Name the session that it is a position in.").At("after")
		}
		entity, err := id.ParseEntity(newID())
		c.session.Entity = entity
		return eventlog.Cursor{}, err
	}
	entity, err := id.ParseEntity(c.wanted)
	if err != nil {
		return eventlog.Cursor{}, fault.New(fault.SessionNotFound).Wrap(err)
	}
	if c.session.Entity = entity; !p.Owns(c.session) {
		return eventlog.Cursor{}, fault.New(fault.SessionNotFound)
	}
	last, err := c.s.dep.Log.Last(c.s.ctx, c.session)
	switch {
	case err != nil:
		return eventlog.Cursor{}, c.s.asFault(err)
	case last.Seq == 0:
		return eventlog.Cursor{}, fault.New(fault.SessionNotFound)
	case !c.resumes:
		return last, nil
	}
	after, err := eventlog.ParseCursor(c.after)
	if err != nil || after.Seq > last.Seq {
		return eventlog.Cursor{}, fault.New(fault.CursorInvalid).At("after").Wrap(err)
	}
	return after, nil
}

// create asks for the new session.
func (c *conn) create() error {
	data, err := json.Marshal(command.OpenSession{Dialect: c.dialect.Name()})
	if err != nil {
		return fmt.Errorf("encode %s: %w", command.Open, err)
	}
	return c.s.dep.Commands.Send(c.s.ctx, command.Command{
		ID: openID, Service: command.Session, Verb: command.Open,
		Tenant: c.session.Tenant, Key: c.session.Entity, Principal: c.who().Subject,
		Source: c.s.source, Time: c.s.dep.Clock().UTC(), Data: data,
	})
}
