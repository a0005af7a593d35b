package asp

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// received is the text of the acknowledgement of a notification. It is the protocol's own.
const received = "Notification received and processed"

// serviceFrames is the table of what services send.
func serviceFrames() map[string]reader {
	return map[string]reader{
		wire.ServiceRegister:         {means: "the service takes its place with its tools; again: it changes what it says of itself, but not its id", read: registerService},
		wire.ServiceUnregister:       {means: "goodbye: its calls end at once (addition)", read: leaveService},
		wire.ServiceTaskResult:       {means: "the outcome of a call; a result that is nothing but an error is a failure", member: true, ends: true, telling: dropped, read: serviceResult},
		wire.ServiceTaskNotification: {means: "how a call is: to the agent and to the client of its task", member: true, telling: dropped, read: serviceNotifies},
		wire.ServiceStatus:           {means: "how the service is: only an active one gets calls", member: true, telling: dropped, read: (*frame).withStatus},
		wire.ServiceNotified:         {means: "to the client that metadata.clientId names, as a client.message; acknowledged", member: true, telling: dropped, read: serviceSays},
		wire.ServiceError:            {means: "fails the call that it names", member: true, ends: true, telling: dropped, read: serviceError},
		wire.Ping:                    {means: "answered by pong", read: ping},
		wire.Pong:                    {means: "a sign of life", read: pong},
	}
}

func registerService(f *frame) []Order {
	manifest := f.Object(f.content, "manifest")
	name := f.needName(f.here("name", "serviceName")...)
	p := f.participant(command.ParticipantService, f.name(f.content, "id"), f.name(f.content, "serviceId"), f.name(manifest, "id"), slug(name), f.in.NewID())
	p.Name, p.Tools = name, f.tools()
	p.Extra = rest(f.content, "id", "serviceId", "name", "serviceName", "capabilities", "description", "status", "tools")
	return one(Order{Register: &p})
}

// slug makes an id of a name, as the original server does.
func slug(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
}

// tools reads content.tools.
func (f *frame) tools() []command.ParticipantTool {
	raw := f.content.Get("tools")
	if raw == nil {
		return nil
	}
	var all []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &all) != nil || len(all) > wire.MaxTools {
		f.Wrong("content.tools", fmt.Sprintf("a list of at most %d tools", wire.MaxTools), raw)
		return nil
	}
	out := make([]command.ParticipantTool, 0, len(all))
	for i, r := range all {
		o := object{Path: fmt.Sprintf("content.tools[%d]", i)}
		var ok bool
		if o.Members, ok = strict.Members(r); !ok {
			f.Wrong(o.Path, strict.AnObject, r)
		}
		f.Object(o, "inputSchema")
		f.Object(o, "outputSchema")
		out = append(out, command.ParticipantTool{
			ID: f.needName(place{o, "id"}, place{o, "name"}), Name: f.name(o, "name"), Description: f.text(o, "description", 0, wire.MaxText),
			InputSchema: o.Get("inputSchema"), OutputSchema: o.Get("outputSchema"), Idempotent: f.flag(o, "idempotent"),
		})
	}
	return out
}

func leaveService(f *frame) []Order { return f.leave(wire.ServiceUnregistered) }

// forward hands on what the service says about a call.
func (f *frame) forward(w Forward) []Order { return one(Order{Forward: &w}) }

func serviceResult(f *frame) []Order {
	call := f.needName(place{f.content, "taskId"}, place{f.top, "taskId"}, place{f.top, "requestId"})
	result := orNull(f.content.Get("result"))
	if why, ok := failureOf(result); ok {
		return f.forward(Forward{CallID: call, Final: true, Failure: why.fault()})
	}
	if truthy(f.content.Get("error")) {
		return f.forward(Forward{CallID: call, Final: true, Failure: failureIn(f.content.Members).fault()})
	}
	return f.forward(Forward{CallID: call, Final: true, Result: result})
}

// fault tells of an error that a tool reports. Its own code is part of the text, for models, and of the details: those of the
// catalogue are ours.
func (w failure) fault() *fault.Fault {
	text := first(w.text, fault.Lookup(fault.ToolFailed).Message)
	if w.code != "" {
		text = w.code + ": " + text
	}
	return fault.Newf(fault.ToolFailed, "%s", text).With(w.about())
}

// about returns the details of a failure with its code.
func (w failure) about() json.RawMessage {
	if w.code == "" {
		return w.details
	}
	m, isObject := strict.Members(w.details)
	if !isObject {
		m = map[string]json.RawMessage{}
		if w.details != nil {
			m["details"] = w.details
		}
	}
	if m["code"] == nil {
		m["code"] = quoted(w.code)
	}
	return strict.Encoded(m)
}

func serviceNotifies(f *frame) []Order {
	n := f.Object(f.content, "notification")
	if n.Members == nil {
		f.Wrong("content.notification", strict.AnObject, f.content.Get("notification"))
	}
	call := f.needName(place{f.content, "taskId"}, place{f.top, "taskId"})
	d := event.CallNotifiedData{
		CallID: call, Server: f.in.Participant.ID, ServerName: f.in.Participant.Name, NotificationType: first(f.word(n, "type"), "info"),
		Message: f.text(n, "message", 0, wire.MaxText), Data: n.Get("data"), At: f.moment(n, "timestamp"),
	}
	return append(f.acknowledge(), f.forward(Forward{CallID: call, Request: f.request(), Notification: &d})...)
}

// moment reads a time; now, if it is absent or no time.
func (f *frame) moment(o object, name string) time.Time {
	if s, ok := strict.Text(o.Get(name)); ok {
		if at, err := time.Parse(time.RFC3339, s); err == nil && at.Year() < 10_000 {
			return at.UTC().Truncate(time.Millisecond)
		}
	}
	return f.in.Now.UTC().Truncate(time.Millisecond)
}

func (f *frame) acknowledge() []Order {
	return f.say(wire.NotificationReceived, wire.NotificationReceivedContent{Message: received, NotificationID: f.id})
}

// serviceSays reads a notification about no call. It is for the operator, unless it
// names a client.
func serviceSays(f *frame) []Order {
	n := f.Object(f.content, "notification")
	if n.Members == nil {
		f.Wrong("content.notification", strict.AnObject, f.content.Get("notification"))
	}
	client := f.name(f.Object(f.content, "metadata"), "clientId")
	if client == "" {
		return f.acknowledge()
	}
	// Replicas of a service have one id and may number their messages alike.
	message := f.stable("message " + f.in.Participant.Connection + " " + f.request())
	return ask(dialect.SendClient{MessageID: message, TargetID: client, MessageType: wire.ServiceNotified, Data: f.content.Get("notification")})
}

func serviceError(f *frame) []Order {
	f.need(f.content, "error")
	call := first(f.name(f.content, "taskId"), f.name(f.top, "taskId"))
	if call == "" {
		return nil // the error concerns no call, and so no caller
	}
	return f.forward(Forward{CallID: call, Final: true, Failure: failureIn(f.content.Members).fault()})
}
