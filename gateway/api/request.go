package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/rpc"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// missing holds the faults of logs that do not exist.
var missing = map[id.Kind]fault.Code{id.KindSession: fault.SessionNotFound, id.KindTask: fault.TaskNotFound}

// ask returns the answer of a service.
func ask[Out any](a *API, r *http.Request, service, verb id.Name, in any) (Out, error) {
	var out Out
	err := rpc.Call(r.Context(), a.cfg.Conn, service, verb, in, &out)
	return out, err
}

// maxClientID bounds the ids that clients give to what they ask for.
const maxClientID = 200

// commandID returns the id of the command that a client's id for it stands for, in a place that the parts name: a repeat
// is the same command. Without a client's id it is a new one.
func commandID(given string, parts ...string) (string, error) {
	switch {
	case given == "":
		return uuid.NewString(), nil
	case len(given) > maxClientID:
		return "", fault.Newf(fault.InvalidField, "id has at most %d bytes.", maxClientID).At("id")
	}
	return id.EntityFromExternal(strings.Join(append(parts, given), "\x00")).String(), nil
}

// completed returns the command with its data as one of the principal. Without data it has none.
func completed(p auth.Principal, c cmd.Command, data any) (cmd.Command, error) {
	if data != nil {
		b, err := json.Marshal(data)
		if err != nil {
			return c, fmt.Errorf("encode a command: %w", err)
		}
		c.Data = b
	}
	c.Tenant, c.Principal, c.Operator, c.Time = p.Tenant, p.Subject, p.Has(auth.RoleOperator), time.Now().UTC()
	return c, nil
}

// act sends a service a command, and returns the event of the log that it has caused.
func (a *API) act(r *http.Request, p auth.Principal, log subject.Log, c cmd.Command, data any, is func(event.Event) bool) (event.Event, error) {
	c, err := completed(p, c, data)
	if err != nil {
		return event.Event{}, err
	}
	return a.cfg.Actor.Act(r.Context(), p, log, c, is)
}

// send gives a service a command, and returns the answer to the client.
func (a *API) send(r *http.Request, p auth.Principal, c cmd.Command, data any) (wire.Accepted, error) {
	c, err := completed(p, c, data)
	if err != nil {
		return wire.Accepted{}, err
	}
	c.ID, c.Source = cmp.Or(c.ID, uuid.NewString()), "waggle/api"
	if err := a.cfg.Commands.Send(r.Context(), c); err != nil {
		return wire.Accepted{}, err
	}
	return wire.Accepted{Accepted: true, CommandID: c.ID}, nil
}

// owned returns the log if the principal's tenant owns it. A log of another tenant does not exist.
func owned(p auth.Principal, kind id.Kind, entity id.Entity) (subject.Log, error) {
	log := subject.Log{Tenant: p.Tenant, Kind: kind, Entity: entity}
	if !p.Owns(log) {
		return subject.Log{}, fault.New(missing[kind])
	}
	return log, nil
}
