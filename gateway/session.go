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

// resolve makes out the session of the socket and the position from which it wants
// to see the log. A session of somebody else is answered exactly as one that does
// not exist.
func (c *conn) resolve() (eventlog.Cursor, error) {
	name, tenant := c.query.Get("session"), c.who().Tenant
	if !c.query.Has("session") {
		c.session = subject.Log{Tenant: tenant, Kind: id.KindSession, Entity: id.EntityFromExternal(newID())}
		c.created = true
		return eventlog.Cursor{}, nil
	}
	entity, err := id.ParseEntity(name)
	if err != nil {
		return eventlog.Cursor{}, fault.New(fault.SessionNotFound).Wrap(err)
	}
	c.session = subject.Log{Tenant: tenant, Kind: id.KindSession, Entity: entity}
	if !c.who().Owns(c.session) {
		return eventlog.Cursor{}, fault.New(fault.SessionNotFound)
	}
	last, err := c.s.dep.Log.Last(c.s.ctx, c.session)
	switch {
	case err != nil:
		return eventlog.Cursor{}, err
	case last.Seq == 0:
		return eventlog.Cursor{}, fault.New(fault.SessionNotFound)
	case !c.query.Has("after"):
		return last, nil
	}
	after, err := eventlog.ParseCursor(c.query.Get("after"))
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
		ID: "open", Service: command.Session, Verb: command.Open,
		Tenant: c.session.Tenant, Key: c.session.Entity, Principal: c.who().Subject,
		Source: "waggle/gateway", Time: c.s.dep.Clock(), Data: data,
	})
}

// asFault returns what a client may be told of err.
func (s *Server) asFault(err error) *fault.Fault {
	ref := newID()
	f := fault.From(err, ref)
	if f.Code == fault.Internal {
		s.dep.Logger.Error().Err(err).Str("reference", ref).Msg("a frame could not be handled for an internal reason")
	}
	return f
}
