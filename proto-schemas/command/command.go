// Package command defines the envelope of every command on the bus.
package command

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Services that take commands.
var (
	Session = id.MustName("session")
	Agent   = id.MustName("agent")
)

// Verbs of the session service. Commands of one session are handled in order.
var (
	Open      = id.MustName("open")       // data: OpenSession
	Message   = id.MustName("message")    // data: UserMessage
	Cancel    = id.MustName("cancel")     // data: CancelRun
	Close     = id.MustName("close")      // data: CloseSession
	TurnEnded = id.MustName("turn-ended") // data: RunRef; the agent's worker reports a terminal event
	WorkDead  = id.MustName("work-dead")  // data: DeadWork; a work item was given up
	Expire    = id.MustName("expire")     // no data; the session's TTL timer fired
)

// Verbs of the agent service. Any worker may take any of them.
var (
	Run = id.MustName("run") // data: RunRef
)

// Command asks a service to do something for one entity.
//
// ID is the dedupe id: the bus drops a repeat within two minutes, and the
// service answers a later one from its log. It is unique within (Service,
// Tenant, Key).
type Command struct {
	ID          string          `json:"id"`
	Service     id.Name         `json:"service"`
	Verb        id.Name         `json:"verb"`
	Tenant      id.Tenant       `json:"tenant"`
	Key         id.Entity       `json:"key"`
	Principal   string          `json:"principal,omitempty"` // who asked; empty for services
	Source      string          `json:"source,omitempty"`    // which process sent it
	Time        time.Time       `json:"time"`
	Data        json.RawMessage `json:"data,omitempty"`
	TraceParent string          `json:"traceparent,omitempty"`
}

// Address returns the subject parts of the command.
func (c Command) Address() subject.Command {
	return subject.Command{Service: c.Service, Tenant: c.Tenant, Key: c.Key, Verb: c.Verb}
}

// DedupeID returns the stream-global Nats-Msg-Id: dedupe ids are shared by a
// whole stream, so the id has to contain the addressee.
func (c Command) DedupeID() string {
	return c.Service.String() + "." + c.Tenant.String() + "." + c.Key.String() + ":" + c.ID
}

// Decode unmarshals the command's data into v, naming the command on failure.
func (c Command) Decode(v any) error {
	if err := json.Unmarshal(c.Data, v); err != nil {
		return fmt.Errorf("decode data of command %s.%s: %w", c.Service, c.Verb, err)
	}
	return nil
}

// OpenSession creates a session, or does nothing if it exists.
type OpenSession struct {
	Dialect string `json:"dialect"`
}

// UserMessage is a message of a user to a session. Command.ID is its id.
type UserMessage struct {
	Content string `json:"content"`
}

// CancelRun stops a run. An empty RunID means the run that is on.
type CancelRun struct {
	RunID  string `json:"run_id,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// CloseSession ends a session.
type CloseSession struct {
	Reason string `json:"reason,omitempty"`
}

// RunRef names one run of a session.
type RunRef struct {
	RunID string `json:"run_id"`
}

// DeadWork reports that the bus gave up delivering a work item.
type DeadWork struct {
	RunID  string `json:"run_id"`
	Reason string `json:"reason"`
}
