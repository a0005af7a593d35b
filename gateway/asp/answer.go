package asp

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// answers is the table of the replies to requests. Requests that are not in it are
// answered by events: Submit, or not at all: OpenClient and NameClient,
// which only come with a Register.
var answers = map[string]func(*Codec, Order, json.RawMessage) (wire.Frame, error){
	dialect.Topic(dialect.ListAgents{}):   decoded(agentList),
	dialect.Topic(dialect.ListServices{}): decoded(serviceList),
	dialect.Topic(dialect.ListClients{}):  decoded(clientList),
	dialect.Topic(dialect.ListServers{}):  decoded(serverList),
	dialect.Topic(dialect.ListTools{}):    decoded(toolList),
	dialect.Topic(dialect.RunTool{}):      decoded(toolOutcome),
	dialect.Topic(dialect.ShowTask{}):     decoded(taskView),
	dialect.Topic(dialect.SendClient{}):   decoded(clientNote),
}

// decoded decodes a reply for f.
func decoded[T any](f func(*Codec, Order, T) wire.Frame) func(*Codec, Order, json.RawMessage) (wire.Frame, error) {
	return func(c *Codec, o Order, reply json.RawMessage) (wire.Frame, error) {
		var v T
		if err := json.Unmarshal(reply, &v); err != nil {
			return wire.Frame{}, fmt.Errorf("decode reply to %s: %w", o.Type, err)
		}
		return f(c, o, v), nil
	}
}

// Answer turns the reply to an order into frames.
func (c *Codec) Answer(at dialect.Link, o Order, reply json.RawMessage) [][]byte {
	if _, ok := o.Ask.(dialect.Submit); ok {
		return c.asBefore(at, o, reply)
	}
	build := decoded(registered)
	switch {
	case o.Ask != nil:
		build = answers[dialect.Topic(o.Ask)]
	case o.Register == nil:
		build = nil
	}
	if build == nil {
		return nil
	}
	f, err := build(c, o, reply)
	if err != nil {
		f = wire.Frame{Type: wire.Error, Content: trouble(fault.New(fault.Internal).Wrap(err))}
	}
	f.RequestID = o.RequestID
	return [][]byte{linked(at, f)}
}

// asBefore answers a request for a task that has come before: again, and with the end that
// the task has had. Any other one is answered by events.
func (c *Codec) asBefore(at dialect.Link, o Order, reply json.RawMessage) (out [][]byte) {
	var v command.TaskView
	if json.Unmarshal(reply, &v) != nil || !v.Before {
		return nil
	}
	add := func(frames []wire.Frame) {
		for _, f := range frames {
			f.ID = "re." + first(o.RequestID, at.ConnectionID) + "." + f.Type
			out = append(out, linked(at, f))
		}
	}
	e := event.Event{Time: v.EndedAt}
	if c.kind == command.ParticipantAgent {
		add(childAccepted(e, event.ChildCreatedData{ChildID: v.TaskID, ChildRequestID: o.RequestID, ChildAgentID: v.AgentID, ChildAgentName: v.AgentName}))
		if !v.EndedAt.IsZero() {
			add(childResponse(e, event.ChildFinishedData{ChildID: v.TaskID, Status: v.Status, Result: v.Result, Code: v.Code, Error: v.Error}))
		}
	} else {
		add(taskCreated(event.Event{Time: v.CreatedAt}, event.TaskCreatedData{TaskHead: event.TaskHead{
			TaskID: v.TaskID, RequestID: o.RequestID, AgentID: v.AgentID, AgentName: v.AgentName,
		}}))
		if !v.EndedAt.IsZero() {
			end := event.TaskFinishedData{TaskHead: v.TaskHead, Status: v.Status, Result: v.Result, Code: v.Code, Error: v.Error, CreatedAt: v.CreatedAt}
			end.RequestID = o.RequestID
			add(taskFinished(e, end))
		}
	}
	return out
}

// registered answers what changes a participant's place in the directory.
func registered(c *Codec, o Order, p command.Participant) wire.Frame {
	p.Online = true
	status, state := c.status(o, p)
	switch {
	case c.kind == command.ParticipantClient:
		return wire.Frame{Type: wire.RegisterResponse, Content: wire.RegisterResponseContent{Success: true, ClientID: p.ID, Client: c.clientEntry(o, p)}}
	case o.Type == wire.AgentStatus || o.Type == "agent.status.update":
		return wire.Frame{Type: wire.AgentStatusUpdated, Content: wire.StatusUpdatedContent{
			ID: p.ID, Status: status, State: state, Message: "Agent status updated successfully",
		}}
	case o.Type == wire.ServiceStatus:
		return wire.Frame{Type: wire.ServiceStatusUpdated, Content: wire.StatusUpdatedContent{
			ID: p.ID, Status: status, State: state, Message: "Service status updated successfully",
		}}
	case c.kind == command.ParticipantAgent:
		return wire.Frame{Type: wire.AgentRegistered, Content: wire.AgentRegisteredContent{
			ID: p.ID, AgentID: p.ID, Name: p.Name, Status: status, State: state, Message: "Agent registered successfully",
		}}
	}
	return wire.Frame{Type: wire.ServiceRegistered, Content: wire.ServiceRegisteredContent{
		ID: p.ID, ServiceID: p.ID, Name: p.Name, Status: status, State: state, Message: "Service registered successfully",
	}}
}

func agentList(c *Codec, o Order, l command.ParticipantList) wire.Frame {
	out := wire.AgentListContent{Next: l.Next(), Agents: []wire.AgentEntry{}}
	for _, p := range l.Participants {
		status, state := c.status(o, p)
		out.Agents = append(out.Agents, wire.AgentEntry{
			ID: p.ID, Name: p.Name, Status: status, State: state, Capabilities: list(p.Capabilities), Description: first(p.Description, describedIn(p.Extra)),
			AgentType: extra(p.Extra, "agentType", "type"), RegisteredAt: wire.Stamp(p.Since), Online: p.Online,
		})
	}
	kind := wire.AgentListResponse
	if c.kind == command.ParticipantAgent {
		kind = wire.AgentAgentListReply
	}
	if o.Type == "agent.list.request" {
		kind = wire.AgentListReply
	}
	return wire.Frame{Type: kind, Content: out}
}

// describedIn returns the description in a manifest.
func describedIn(raw json.RawMessage) string {
	m, _ := strict.Members(raw)
	return extra(m["manifest"], "description")
}

func serviceList(c *Codec, o Order, l command.ParticipantList) wire.Frame {
	out := wire.ServiceListContent{Next: l.Next(), Services: []wire.ServiceEntry{}}
	for _, p := range l.Participants {
		status, state := c.status(o, p)
		out.Services = append(out.Services, wire.ServiceEntry{
			ID: p.ID, Name: p.Name, Status: status, State: state, Capabilities: list(p.Capabilities),
			Description: first(p.Description, describedIn(p.Extra)), Online: p.Online,
		})
	}
	return wire.Frame{Type: wire.AgentServiceListReply, Content: out}
}

func clientList(c *Codec, o Order, l command.ParticipantList) wire.Frame {
	out := wire.ClientListContent{Next: l.Next(), Clients: []wire.ClientEntry{}}
	for _, p := range l.Participants {
		out.Clients = append(out.Clients, c.clientEntry(o, p))
	}
	return wire.Frame{Type: wire.ClientListResponse, Content: out}
}

func (c *Codec) clientEntry(o Order, p command.Participant) wire.ClientEntry {
	status, state := c.status(o, p)
	return wire.ClientEntry{
		ID: p.ID, Name: p.Name, Status: status, State: state, ClientType: extra(p.Extra, "clientType", "type"),
		Version: extra(p.Extra, "version"), Capabilities: list(p.Capabilities), RegisteredAt: wire.Stamp(p.Since), Online: p.Online,
	}
}

func serverList(c *Codec, o Order, l command.ParticipantList) wire.Frame {
	out := wire.ServerListContent{Next: l.Next(), Servers: []wire.ServerEntry{}}
	for _, p := range l.Participants {
		status, state := c.status(o, p)
		out.Servers = append(out.Servers, wire.ServerEntry{
			ID: p.ID, Name: p.Name, Type: extra(p.Extra, "type"), Status: status, State: state, Capabilities: list(p.Capabilities),
		})
	}
	kind := wire.ServerListResponse
	if c.kind == command.ParticipantAgent {
		kind = wire.AgentServerListReply
	}
	if o.Type == "mcp.servers.list.request" {
		kind = wire.ServerListReply
	}
	return wire.Frame{Type: kind, Content: out}
}

func toolList(c *Codec, o Order, l command.ToolList) wire.Frame {
	tools := make([]wire.ToolEntry, 0, len(l.Tools))
	for _, t := range l.Tools {
		entry := wire.ToolEntry{
			ID: t.ID, Name: t.ID, Title: t.Name, Description: t.Description,
			InputSchema: t.InputSchema, Parameters: t.InputSchema, OutputSchema: t.OutputSchema,
		}
		if o.Type == wire.ServiceToolsList { // a service has named its tools itself
			entry.Name, entry.Title = first(t.Name, t.ID), ""
		}
		tools = append(tools, entry)
	}
	if o.Type == wire.ServiceToolsList {
		return wire.Frame{Type: wire.ServiceToolsReply, Content: wire.ServiceToolsContent{ServiceID: l.Server, ServiceName: first(l.Name, l.Server), Tools: tools}}
	}
	kind := wire.ServerTools
	if c.kind == command.ParticipantAgent {
		kind = wire.MCPToolsReply
	}
	return wire.Frame{Type: kind, Content: wire.ServerToolsContent{ServerID: l.Server, ServerName: first(l.Name, l.Server), Tools: tools}}
}

// toolOutcome answers a call outside of a task, or one whose task was found by its caller.
func toolOutcome(c *Codec, _ Order, d command.ToolOutcome) wire.Frame {
	if d.Kind == kindService {
		return wire.Frame{Type: wire.ServiceExecuteReply, Content: wire.ServiceExecuteReplyContent{
			ServiceID: d.Server, ServiceName: d.ServerName, ToolID: d.Tool, TaskID: d.TaskID, Status: outcome(d.Status), Result: d.Result,
			Error: why(d.Status, d.Error, d.Code), Code: d.Code, Details: d.Details, ExecutionTime: d.DurationMS,
		}}
	}
	kind := wire.MCPTaskExecution
	if c.kind == command.ParticipantAgent {
		kind = wire.ToolExecuteReply
	}
	return wire.Frame{Type: kind, Content: executed(event.CallFinishedData{
		TaskHead: event.TaskHead{TaskID: d.TaskID}, Server: d.Server, ServerName: d.ServerName, Tool: d.Tool, Status: d.Status,
		Result: d.Result, Code: d.Code, Error: d.Error, DurationMS: d.DurationMS,
	})}
}

// taskView has no member error: the calls of the SDK reject an answer that has one, and it would tell of no failed task.
func taskView(_ *Codec, _ Order, v command.TaskView) wire.Frame {
	if v.Error != "" || v.Code != "" {
		failure, err := json.Marshal(wire.TaskFailure{Error: v.Error, Code: v.Code, Result: v.Result})
		if err == nil { // the result was JSON when it was taken
			v.Result = failure
		}
	}
	return wire.Frame{Type: wire.TaskStatusResponse, Content: wire.TaskStatusContent{
		TaskID: v.TaskID, Status: v.Status, AgentID: v.AgentID, AgentName: v.AgentName, CreatedAt: wire.Stamp(v.CreatedAt), Progress: v.Progress,
		Result: v.Result, CompletedAt: wire.Stamp(v.EndedAt),
	}}
}

func clientNote(c *Codec, o Order, n command.ClientNote) wire.Frame {
	if c.kind == command.ParticipantService {
		return wire.Frame{Type: wire.NotificationReceived, Content: wire.NotificationReceivedContent{Message: received, NotificationID: o.RequestID}}
	}
	return wire.Frame{Type: wire.MessageSent, Content: wire.MessageSentContent{
		Target: wire.Party{Type: command.ParticipantClient, ID: n.TargetID}, TargetClientID: n.TargetID, Status: statusSent,
	}}
}

// list returns a list that is never null.
func list(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

// status returns the words for the status of a participant: that of the vocabulary in which the
// order is answered and that of the other one. A participant that is away is inactive.
func (c *Codec) status(o Order, p command.Participant) (status, state string) {
	now := first(p.Status, command.StatusActive)
	if !p.Online {
		now = command.StatusInactive
	}
	words := cmp.Or(o.Words, c.settings.Statuses, command.VocabularySDK)
	return words.Word(now), words.Other().Word(now)
}
