package asp

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// clientFrames is the table of what clients send.
func clientFrames() map[string]reader {
	return map[string]reader{
		wire.AgentListRequest:  {means: "list of agents; status, capabilities (all of them) and name (a part of it) have to fit", read: clientAgents},
		wire.TaskCreateRequest: {means: "gives a task to the agent with agentId, else agentName, else to any with all capabilities", read: createTask},
		wire.TaskStatusRequest: {means: "how a task is", read: showTask},
		wire.TaskCancelRequest: {means: "stops a task (addition)", telling: asked, read: cancelTask},
		wire.TaskMessage:       {means: "tells the agent of a task something; answers its open question, if it has one", telling: asked, read: messageTask},
		wire.ServerListRequest: {means: "list of MCP servers; type, status and capabilities have to fit", read: listServers},
		wire.ServerTools:       {means: "tools of an MCP server", read: serverTools},
		wire.ToolExecute:       {means: "runs a tool of an MCP server", read: clientTool},
		wire.ClientRegister:    {means: "names the client; with clientId and resumeToken it comes back as that client", read: registerClient},
		wire.ClientList:        {means: "list of clients; clientType and status have to fit", read: listClients},
		wire.ClientMessage:     {means: "a message to another client, kept while that is away", read: messageClient},
		wire.Ping:              {means: "answered by pong", read: ping},
		wire.Pong:              {means: "a sign of life", read: pong},
	}
}

func clientAgents(f *frame) []Order { return ask(dialect.ListAgents(f.filter())) }

func listServers(f *frame) []Order { return ask(dialect.ListServers(f.filter("type"))) }

func listClients(f *frame) []Order {
	return ask(dialect.ListClients(f.filter("clientType", "type")))
}

func createTask(f *frame) []Order {
	c := f.content
	t := dialect.Submit{
		TaskID: f.stable("task"), RequestID: f.id, ClientID: f.in.Participant.ID, AgentID: f.name(c, "agentId"), AgentName: f.name(c, "agentName"),
		Capabilities: f.list(c, "capabilities"), TaskType: f.word(c, "taskType"), Data: f.need(c, "taskData"),
		QueueMS: f.wait(c, "queueTimeout"), TimeoutMS: f.wait(c, "timeout"),
	}
	data, _ := strict.Members(t.Data)
	t.TaskType = first(t.TaskType, typeOfData(data))
	if t.AgentID != "" || t.AgentName != "" {
		return ask(t)
	}
	if raw := data["capabilities"]; len(t.Capabilities) == 0 && len(raw) > 0 {
		t.Capabilities, _ = names(raw) // the agent judges any other value
	}
	if len(t.Capabilities) == 0 {
		f.Wrong("content.agentId", "an id, unless agentName or capabilities name the agent", nil)
	}
	return ask(t)
}

// typeOfData returns the type that the data of a task says of itself.
func typeOfData(data map[string]json.RawMessage) string {
	s, _ := strict.Text(data["taskType"])
	if len(s) > wire.MaxWord {
		return ""
	}
	return s
}

func showTask(f *frame) []Order {
	return ask(dialect.ShowTask{TaskID: f.needName(f.here("taskId")...)})
}

func cancelTask(f *frame) []Order {
	task := f.needName(f.here("taskId")...)
	member := f.name(f.content, "agentName")
	if name, ok := f.ofWatched(task); ok {
		return f.cancelWatched(task, name, member)
	}
	return f.tell(task, dialect.CancelTask{
		TaskID: task, ClientID: f.in.Participant.ID, RequestID: f.id, Reason: f.text(f.content, "reason", 0, wire.MaxText),
	})
}

func messageTask(f *frame) []Order {
	task := f.needName(f.here("taskId")...)
	input, member := f.name(f.content, "inputId"), f.name(f.content, "agentName")
	if name, ok := f.ofWatched(task); ok {
		return f.messageWatched(task, name, input, member)
	}
	return f.tell(task, dialect.MessageTask{
		TaskID: task, ClientID: f.in.Participant.ID, RequestID: f.id,
		MessageType: first(f.word(f.content, "messageType"), fromClient), Message: f.need(f.content, "message"),
	})
}

func serverTools(f *frame) []Order {
	return ask(dialect.ListTools{Kind: kindMCP, Server: f.needName(f.here("serverId")...)})
}

func clientTool(f *frame) []Order {
	return f.run(f.tool(kindMCP, f.here("serverId"), f.here("toolName", "toolId"), "parameters", "params"))
}

// registerClient makes two or three orders: to come back as the client that it was, to
// write down its name, and to show it to others, which is what is answered.
func registerClient(f *frame) []Order {
	c := f.content
	p := f.participant(command.ParticipantClient)
	p.Name = first(f.name(c, "clientName"), f.name(c, "name"), p.Name)
	kind, version := first(f.word(c, "clientType"), f.word(c, "type")), f.word(c, "version")
	p.Extra = typed(rest(c, "clientName", "name", "capabilities", "description", "status", "clientId", "resumeToken", "lastSeq"), "clientType")
	var orders []Order
	back := dialect.OpenClient{ClientID: f.name(c, "clientId"), Token: f.name(c, "resumeToken"), After: f.seq(c, "lastSeq")}
	if back.ClientID != "" && back.Token != "" {
		orders = ask(back)
	}
	orders = append(orders, ask(dialect.NameClient{
		ClientID: p.ID, Name: p.Name, ClientType: kind, Version: version, Capabilities: p.Capabilities, Extra: p.Extra,
	})...)
	return append(orders, Order{Register: &p})
}

// seq reads a position, nil if it is absent.
func (f *frame) seq(o object, name string) *uint64 {
	raw := o.Get(name)
	if raw == nil {
		return nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n < 0 || n > maxSeq {
		f.Wrong(o.At(name), fmt.Sprintf("a number from 0 to %d", int64(maxSeq)), raw)
		return nil
	}
	u := uint64(n)
	return &u
}

// maxSeq is the largest position that every JSON reader can hold.
const maxSeq = 1<<53 - 1

func messageClient(f *frame) []Order {
	target := f.Object(f.content, "target")
	to := f.needName(place{f.content, "targetClientId"}, place{target, "id"})
	return ask(dialect.SendClient{MessageID: f.stable("message"), TargetID: to, MessageType: f.word(f.content, "messageType"), Data: f.content.Get("data")})
}
