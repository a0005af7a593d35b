// Package remote carries tool calls over the bus: a client for workers, and a server for the tool
// service. It runs no tool itself.
package remote

import (
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

// Subjects of the service. The service answers a call with any number of messages with the state "running", or "told" for
// requested notifications, and one with the state "done", which has the outcome.
var (
	listSubject   = subject.RPC(tools.ServiceName, id.MustName("list"))    // body: listRequest
	seekSubject   = subject.RPC(tools.ServiceName, id.MustName("servers")) // body: listRequest
	callSubject   = subject.RPC(tools.ServiceName, id.MustName("call"))    // body: Call
	cancelSubject = subject.RPC(tools.ServiceName, id.MustName("cancel"))  // body: callRef; to all instances
	attachSubject = subject.RPC(tools.ServiceName, id.MustName("attach"))  // body: callRef; to all instances
)

const (
	headerState = "Waggle-State"
	headerTrace = "traceparent"
	stateBusy   = "running"
	stateTold   = "told"
	stateDone   = "done"
	// headerNotify marks calls whose caller wants notifications.
	headerNotify = "Waggle-Notify"
	// envelope bounds the size of a reply beside the text of its result.
	envelope = 4 << 10
)

// callRef identifies an earlier call.
type callRef struct {
	ID     string    `json:"id"`
	Scope  string    `json:"scope,omitempty"`
	Tenant id.Tenant `json:"tenant"`
}

func (r callRef) key() calls.Key { return calls.Key{Tenant: r.Tenant, Scope: r.Scope, ID: r.ID} }

// listRequest asks for tools with names after After, of one server if it is named; or for servers of a kind with orders
// after After.
type listRequest struct {
	Tenant id.Tenant `json:"tenant"`
	Kind   string    `json:"kind,omitempty"`
	Server string    `json:"server,omitempty"`
	After  string    `json:"after,omitempty"`
}

// reply answers every request.
type reply struct {
	Result  *tools.Result  `json:"result,omitempty"`
	Tools   []tools.Tool   `json:"tools,omitempty"`
	Server  *tools.Server  `json:"server,omitempty"` // the server of the tools, if the request named one
	Servers []tools.Server `json:"servers,omitempty"`
	More    bool           `json:"more,omitempty"` // more elements follow the last one
	Fault   *wireFault     `json:"fault,omitempty"`
}

// wireFault is an encoded fault. Its cause stays in the service.
type wireFault struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Field   string     `json:"field,omitempty"`
	Ref     string     `json:"ref,omitempty"`
}

func faultReply(f *fault.Fault) reply {
	return reply{Fault: &wireFault{Code: f.Code, Message: f.Message, Field: f.Field, Ref: f.Ref}}
}

func (f *wireFault) fault() *fault.Fault {
	return &fault.Fault{Code: f.Code, Message: f.Message, Field: f.Field, Ref: f.Ref}
}

// message returns a reply as a message of at most limit bytes: it cuts the text of a result until the message fits, because
// JSON may be longer than the text. It cannot cut data, and replaces data that does not fit with a fault.
func message(to string, r reply, limit int) (*nats.Msg, error) {
	m := nats.NewMsg(to)
	m.Header.Set(headerState, stateDone)
	for {
		b, err := bound.JSON(r)
		if err != nil {
			return nil, err
		}
		over := len(b) + envelope - limit
		if over > 0 && r.Result != nil && r.Result.Data != nil {
			r = faultReply(bound.TooLong(len(r.Result.Data), limit-envelope))
			continue
		}
		if over <= 0 || r.Result == nil || r.Result.Text == "" {
			m.Data = b
			return m, nil
		}
		short := *r.Result
		// Each byte of text is at least one byte of JSON and at most six.
		short.Text, short.Truncated = bound.Cut(short.Text, max(0, len(short.Text)-max(over/6, 1))), true
		r.Result = &short
	}
}

// busy returns the heartbeat of a running call.
func busy(to string) *nats.Msg {
	m := nats.NewMsg(to)
	m.Header.Set(headerState, stateBusy)
	return m
}

// noResponders reports whether the bus reports a subject without subscribers.
func noResponders(m *nats.Msg) bool {
	return len(m.Data) == 0 && m.Header.Get("Status") == strconv.Itoa(503)
}
