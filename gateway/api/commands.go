package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// missing holds the faults of logs that do not exist.
var missing = map[id.Kind]fault.Code{id.KindSession: fault.SessionNotFound, id.KindTask: fault.TaskNotFound}

// ask returns what a service says.
func ask[Out any](r *http.Request, who *edge.Client, service, verb id.Name, in any) (Out, error) {
	var out Out
	err := who.Ask(r.Context(), edge.Request{Service: service, Verb: verb, In: in}, &out)
	return out, err
}

// change has a service change something at once, and returns what it says.
func change[Out any](r *http.Request, who *edge.Client, service, verb id.Name, in any) (Out, error) {
	var out Out
	err := who.Ask(r.Context(), edge.Request{Service: service, Verb: verb, In: in, Changes: true}, &out)
	return out, err
}

// command returns the command of the client with its data. Without data it has none.
func command(who *edge.Client, c cmd.Command, data any) (cmd.Command, error) {
	if data != nil {
		b, err := json.Marshal(data)
		if err != nil {
			return c, fmt.Errorf("encode a command: %w", err)
		}
		c.Data = b
	}
	c.ID, c.Tenant = cmp.Or(c.ID, uuid.NewString()), who.Principal().Tenant
	return c, nil
}

// act sends a service a command, and returns the event of the log that it has caused.
func act(r *http.Request, who *edge.Client, log subject.Log, c cmd.Command, data any, is func(event.Event) bool) (event.Event, error) {
	c, err := command(who, c, data)
	if err != nil {
		return event.Event{}, err
	}
	e, err := who.Outcome(r.Context(), log, c, is)
	if f, ok := errors.AsType[edge.Refusal](err); ok {
		return e, detailed(f)
	}
	return e, err
}

// detailed returns the fault of a refusal, whose document says which answer counts.
func detailed(f edge.Refusal) respond.Detailed {
	members := map[string]any{}
	for name, v := range map[string]string{
		"input_id": f.Data.InputID, "answered_by": f.Data.AnsweredBy, "answered_on": f.Data.AnsweredOn, "decision": f.Data.Decision,
	} {
		if v != "" {
			members[name] = v
		}
	}
	return respond.Detailed{Fault: f.Fault, Members: members}
}

// send gives a service a command, and returns the answer to the client.
func send(r *http.Request, who *edge.Client, c cmd.Command, data any) (wire.Accepted, error) {
	c, err := command(who, c, data)
	if err != nil {
		return wire.Accepted{}, err
	}
	if err := who.Do(r.Context(), "", c); err != nil {
		return wire.Accepted{}, err
	}
	return wire.Accepted{Accepted: true, CommandID: c.ID}, nil
}

// owned returns the log if the principal's tenant owns it. A log of another tenant does not exist.
func owned(who *edge.Client, kind id.Kind, entity id.Entity) (subject.Log, error) {
	p := who.Principal()
	log := subject.Log{Tenant: p.Tenant, Kind: kind, Entity: entity}
	if !p.Owns(log) {
		return subject.Log{}, fault.New(missing[kind])
	}
	return log, nil
}

// renamed refuses members with a former name, and says the name that they have now.
func renamed(former map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(former)) {
		if former[name] != nil {
			now := strings.Replace(name, "tasks", "steps", 1)
			return fault.Newf(fault.InvalidField, "%s is now called %s. Rename it and send the request again.", name, now).At(name)
		}
	}
	return nil
}
