// Package asp translates frames of the Agent Swarm Protocol into intents and inquiries, and
// events of tasks into frames, for each of its three roles.
//
// A gateway has to know:
//
//   - The id of every intent carries the id of its frame (see commandID), because
//     direct messages answer with nothing but the id of the command. A frame without an id is
//     answered without requestId.
//   - The Request of an intent is the same for a frame that comes again. Inquiries have ids
//     that are made in the same way (see stable).
//   - client.agent.task.create.response, task.message.sent and the end of a task are
//     events of the client's log: the answers to Submit and the like have no frames.
//   - A direct notice with the action cancel answers a client's cancel request.
//   - The question of an agent is known by the id of its frame: InputID is what an answer
//     refers to.
//   - client.register with clientId and resumeToken asks for OpenClient first: the
//     gateway then shows that client's log. Orders after one that failed do not count.
//   - A request of an agent that names no task belongs to the OnlyTask that the agent has. A
//     tool call without a task is the inquiry RunTool.
//   - Of the frames of one event only the last has its seq: a client that is cut off
//     between them gets all of them again, with the same ids.
package asp

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/internal/eventdata"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// greeting is the text of the first frame of every socket. It is the protocol's own.
const greeting = "Welcome to Agent Swarm Protocol"

// features are what the server can do, in the protocol's words.
var features = []string{"tasks", "agents", "services", "mcp", "clients", "resume", "cancel"}

// Client returns the codec of the sockets of clients.
func Client(s Settings) *Codec {
	return &Codec{name: "asp-client", kind: command.ParticipantClient, settings: s, types: wire.Client, in: clientFrames(), out: clientEvents(s), watched: watchedTasks()}
}

// Agent returns the codec of the sockets of agents.
func Agent(s Settings) *Codec {
	return &Codec{name: "asp-agent", kind: command.ParticipantAgent, settings: s, types: wire.Agent, in: agentFrames(), out: agentEvents()}
}

// Service returns the codec of the sockets of services.
func Service(s Settings) *Codec {
	return &Codec{name: "asp-service", kind: command.ParticipantService, settings: s, types: wire.Service, in: serviceFrames(), out: serviceEvents()}
}

// Name is short, constant and unique among all codecs.
func (c *Codec) Name() string { return c.name }

// Kind is command.ParticipantClient, ParticipantAgent or ParticipantService.
func (c *Codec) Kind() string { return c.kind }

// Welcome returns the first frame of a socket. For a client, opened describes its inbox.
func (c *Codec) Welcome(at dialect.Link, opened *command.OpenClientReply) []byte {
	f := wire.Frame{ID: at.ConnectionID, Type: wire.Welcome}
	if c.kind != command.ParticipantClient {
		content := wire.WelcomeContent{
			Version: c.settings.ServerVersion, OrchestratorVersion: c.settings.ServerVersion, Message: greeting,
			Config: wire.WelcomeConfig{MaxConcurrentTasks: c.settings.MaxConcurrentTasks, HeartbeatInterval: c.settings.Heartbeat.Milliseconds()},
		}
		if c.kind == command.ParticipantAgent {
			content.Config.TaskTimeout = c.settings.TaskTimeout.Milliseconds()
		}
		f.Content = content
		return linked(at, f)
	}
	content := wire.ClientWelcomeContent{
		Version: c.settings.ServerVersion, OrchestratorVersion: c.settings.ServerVersion, Message: greeting,
		Config: wire.ClientConfig{
			MaxConcurrentTasks: c.settings.MaxConcurrentTasks, DefaultTimeout: c.settings.QueueTimeout.Milliseconds(), SupportedFeatures: features,
		},
	}
	if opened != nil {
		content.ClientID, content.ResumeToken, content.Resumed = opened.ClientID, opened.Token, opened.Resumed
	}
	f.Type, f.Content = wire.ClientWelcome, content
	return linked(at, f)
}

// Orders turns a frame into orders to the gateway. The rules for frame and error are
// those of dialect.Codec.Decode; requestID is the id that an error refers to, if the frame has
// a readable one. An error that the participant does not get is Dropped.
func (c *Codec) Orders(raw []byte, in Inbound) ([]Order, string, error) {
	f := frame{in: in}
	r, ok := c.open(&f, raw)
	f.quiet = f.kind != "" && c.quiet(r, f.top.Get("id") != nil)
	if !ok || f.Fault != nil {
		return nil, f.id, f.refusal(f.Err())
	}
	if r.member && !in.Participant.Online {
		return nil, f.id, f.refusal(fault.New(fault.NotRegistered))
	}
	orders := r.read(&f)
	if f.Fault != nil {
		return nil, f.id, f.refusal(f.Fault)
	}
	for i := range orders {
		orders[i].RequestID, orders[i].Type, orders[i].Words, orders[i].Unanswered, orders[i].Placed = f.id, f.kind, f.words, f.quiet, f.placed
	}
	return orders, f.id, nil
}

// described are the frames that have a status in them, or in their answer, and that only
// the description knows: the SDKs have other names for them.
var described = []string{"agent.list.request", "agent.status.update", "mcp.servers.list.request"}

// quiet reports whether the sender of a frame is not told that it has no effect. One
// whose type is unknown is answered as a request is.
func (c *Codec) quiet(r reader, hasID bool) bool {
	if r.telling == usual && c.kind == command.ParticipantClient {
		return false
	}
	return r.telling == dropped || !hasID
}

// refusal is why a frame has no effect, for its sender or for the gateway alone.
func (f *frame) refusal(err error) error {
	if f.quiet && err != nil {
		return Dropped{Err: err, Ends: f.kind == wire.AgentRegister || f.kind == wire.ServiceRegister}
	}
	return err
}

// open reads what all frames have and returns what reads the rest.
func (c *Codec) open(f *frame, raw []byte) (reader, bool) {
	m, ok := strict.Members(raw)
	if !ok {
		f.Wrong("", strict.AnObject, raw)
		return reader{}, false
	}
	f.top = object{Members: m}
	f.id = f.name(f.top, "id")
	if f.Fault != nil {
		f.id = ""
	}
	if f.kind, ok = strict.Text(f.top.Get("type")); !ok {
		f.Wrong("type", "the name of a message", f.top.Get("type"))
		return reader{}, false
	}
	name := f.kind
	if canonical, ok := c.types.Aliases[name]; ok {
		name = canonical
	}
	if slices.Contains(described, f.kind) {
		f.words = command.VocabularyDocument
	}
	r, ok := c.in[name]
	if !ok && f.Fault == nil {
		f.Fault = fault.New(fault.UnknownType).At("type").Unlike("one of "+strings.Join(c.types.In, ", "), strict.Sample(f.top.Get("type")))
	}
	f.content = f.Object(f.top, "content")
	return r, ok
}

// Encode turns an event of the client's log, or a direct message, into frames. Events of a log
// give the same bytes for every socket. Of a log that a client watches the frames say so and
// have no seq of the client's own; events of members of a team have the frames that they
// have in their own logs, with the member.
func (c *Codec) Encode(e event.Event) [][]byte {
	table, watched := c.out, c.watched != nil && isWatched(e)
	if watched {
		table, e = c.watched, event.Unwrap(e)
	}
	write, ok := table[e.Type]
	switch {
	case !ok && watched:
		write = neutral
	case !ok:
		return nil
	}
	frames, err := write(e)
	var out [][]byte
	for i, f := range frames {
		if err != nil {
			break
		}
		var b []byte
		b, err = sealed(e, f, i == len(frames)-1, watched)
		out = append(out, b)
	}
	if err != nil {
		return [][]byte{damaged(e, watched)}
	}
	return out
}

// Repeat returns frames to send again a moment after those of an event of the client's log. They
// are not part of the event, have no position, and may get lost. The SDK's call for a task settles in two steps: the first
// on the result with the requestId of the call, the second on a later one without. A
// client that does not need that one knows it by its id, which is that of the first.
func (c *Codec) Repeat(e event.Event) [][]byte {
	if c.kind != command.ParticipantClient || e.Type != event.TaskFinished || e.Sequence == 0 || isWatched(e) {
		return nil
	}
	d, err := eventdata.As[event.TaskFinishedData](e)
	if err != nil || d.ParentID != "" || d.RequestID == "" || d.Status != event.TaskEndCompleted {
		return nil
	}
	d.RequestID, e.Sequence = "", 0
	var out [][]byte
	for _, f := range taskFinished(e, d) {
		b, err := sealed(e, f, true, false)
		if err != nil {
			return nil // nor has the event a frame
		}
		out = append(out, b)
	}
	return out
}

// sealed fills in what frames of events have and encodes the frame.
func sealed(e event.Event, f wire.Frame, last, watched bool) ([]byte, error) {
	f.Timestamp = wire.Stamp(e.Time)
	if f.ID == "" {
		f.ID = e.ID
	}
	if last {
		f.Seq = e.Sequence
	}
	if watched {
		f.ID = "watched." + e.Subject + "-" + strconv.FormatUint(e.Sequence, 10)
		locate(e, &f, last)
	}
	if !last {
		f.ID += "." + f.Type
	}
	return f.Encode()
}

// damaged stands for an event that cannot be read: its participant must not mistake a damaged
// log for silence.
func damaged(e event.Event, watched bool) []byte {
	f := fault.Newf(fault.Internal, "An event for you could not be shown. Tell the operator its id and seq.")
	b, err := sealed(e, wire.Frame{Type: wire.Error, Content: trouble(f)}, true, watched)
	if err != nil {
		panic("asp: " + err.Error()) // A frame without raw members can always be encoded.
	}
	return b
}

// Refuse returns the frame with the fault of an order, or of a frame that became none: that order has a RequestID only.
func (c *Codec) Refuse(at dialect.Link, o Order, f *fault.Fault) []byte {
	content := trouble(f)
	content.Details = first(content.Details, absent(o.Ask, f.Code))
	return linked(at, wire.Frame{Type: wire.Error, RequestID: o.RequestID, Content: content})
}

// Ping returns the frame of a heartbeat, or nil for a participant that has none. The protocol has none for clients.
func (c *Codec) Ping(at dialect.Link) []byte {
	if c.kind == command.ParticipantClient {
		return nil
	}
	return linked(at, wire.Frame{
		ID: "ping." + at.ConnectionID + "." + wire.Stamp(at.Now), Type: wire.Ping, Content: wire.PulseContent{Timestamp: wire.Stamp(at.Now)},
	})
}

// Row is one message type and what becomes of it.
type Row struct {
	Type    string
	In      bool     // from the participant
	Aliases []string // other names that are taken for it
	Means   string
}

// Table lists every message of a role (command.ParticipantClient, ParticipantAgent, ParticipantService) and
// how it is handled.
func Table(kind string) []Row {
	c := map[string]*Codec{
		command.ParticipantClient: Client(Settings{}), command.ParticipantAgent: Agent(Settings{}), command.ParticipantService: Service(Settings{}),
	}[kind]
	if c == nil {
		return nil
	}
	var out []Row
	for _, t := range c.types.In {
		r := Row{Type: t, In: true, Means: c.in[t].means}
		for alias, of := range c.types.Aliases {
			if of == t {
				r.Aliases = append(r.Aliases, alias)
			}
		}
		slices.Sort(r.Aliases)
		out = append(out, r)
	}
	for _, t := range c.types.Out {
		out = append(out, Row{Type: t, Means: outMeans[kind][t]})
	}
	return out
}

// clientEvents is the table of what clients are told. Events that are not in it have no
// frames: the opening of the log, a name (its request is answered), and what agents are
// refused.
func clientEvents(s Settings) map[event.Type]writer {
	return map[event.Type]writer{
		event.InboxMessaged:  with(clientMessage),
		event.TaskCreated:    with(taskCreated),
		event.TaskQueued:     with(taskQueued),
		event.TaskAssigned:   with(taskAssigned),
		event.TaskReported:   with(taskReported),
		event.TaskNotified:   with(notified(s.RawMessages)),
		event.TaskMessaged:   with(taskMessaged),
		event.TaskReleased:   with(taskReleased),
		event.TaskAsked:      with(taskAsked),
		event.TaskAskExpired: with(taskAskExpired),
		event.TaskFinished:   with(taskFinished),
		event.ChildCreated:   with(childCreated),
		event.ChildFinished:  with(childFinished),
		event.CallStarted:    with(callStarted),
		event.CallNotified:   with(called),
		event.CallFinished:   with(callFinished),
		event.CommandRefused: with(refused),
		event.Notice:         with(done),
	}
}

// Settings are what frames say of the server. All gateways of an installation have the
// same.
type Settings struct {
	ServerVersion      string
	Heartbeat          time.Duration // between two pings
	QueueTimeout       time.Duration // how long a task waits for an agent, unless it says otherwise
	TaskTimeout        time.Duration // of a task that says none; 0 = no limit
	MaxConcurrentTasks int           // of one connection of an agent or a service

	// Statuses is the vocabulary of the member status in answers to participants that do not say
	// which one they use; state has the other one's word. Empty = the SDKs'.
	Statuses command.Vocabulary

	// RawMessages passes the message of a task.notification on as the agent gave it, as the
	// original server does. Otherwise message is a text.
	RawMessages bool
}

// Codec translates for the sockets of one role: clients, agents or services. The socket of a client shows the client's log;
// the others get direct messages only. Frames become orders, which the gateway carries out in sequence. It is immutable.
type Codec struct {
	name, kind string
	settings   Settings
	types      wire.Types
	in         map[string]reader
	out        map[event.Type]writer
	watched    map[event.Type]writer // of a task that a client watches; other logs have the neutral form
}
