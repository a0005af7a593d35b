package asp

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// statusFailed is how an agent says that it cannot do a task.
const statusFailed = "failed"

// agentFrames is the table of what agents send.
func agentFrames() map[string]reader {
	return map[string]reader{
		wire.AgentRegister:      {means: "the agent takes its place; again: it changes what it says of itself, but not its id", read: registerAgent},
		wire.AgentUnregister:    {means: "goodbye: its tasks go to others at once (addition)", read: leaveAgent},
		wire.AgentTaskResult:    {means: "the end of a task; a result that is nothing but an error is a failure", member: true, ends: true, telling: dropped, read: agentResult},
		wire.AgentResponse:      {means: "the same, in the described form of a child task", member: true, ends: true, telling: dropped, read: agentResult},
		wire.TaskStatus:         {means: "how the task is", member: true, telling: dropped, read: taskStatus},
		wire.TaskMessage:        {means: "a task.notification to the client; its type, if message.type is one of the seven", member: true, telling: dropped, read: notifyTask},
		wire.TaskNotification:   {means: "a task.notification to the client", member: true, telling: dropped, read: notifyTask},
		wire.TaskRequestMessage: {means: "a question to the client", member: true, read: askTask},
		wire.TaskError:          {means: "the task failed", member: true, ends: true, telling: dropped, read: taskError},
		wire.AgentStatus:        {means: "how the agent is: inactive and maintenance keep tasks from it, of several agents the active ones are chosen first", member: true, read: (*frame).withStatus},
		wire.AgentAgentList:     {means: "list of agents", read: clientAgents},
		wire.AgentServiceList:   {means: "list of services", read: listServices},
		wire.ServiceToolsList:   {means: "tools of a service", read: serviceTools},
		wire.ServiceExecute:     {means: "runs a tool of a service, within the named task, or else the agent's only task; outside of tasks if the agent has none or several", member: true, read: agentService},
		wire.AgentRequest:       {means: "a child task for another agent, of the named task or else of the task [mentioned last](#child-tasks)", member: true, read: agentRequest},
		wire.AgentServerList:    {means: "list of MCP servers", read: listServers},
		wire.MCPToolsList:       {means: "tools of an MCP server", read: serverTools},
		wire.ToolExecute:        {means: "runs a tool of an MCP server, within a task like a service's", member: true, read: agentMCP},
		wire.Ping:               {means: "answered by pong", read: ping},
		wire.Pong:               {means: "a sign of life", read: pong},
	}
}

func registerAgent(f *frame) []Order {
	manifest := f.Object(f.content, "manifest")
	p := f.participant(command.ParticipantAgent, f.name(f.content, "id"), f.name(f.content, "agentId"), f.name(manifest, "id"), f.in.NewID())
	p.Name = f.needName(f.here("name", "agentName")...)
	p.Extra = typed(rest(f.content, "id", "agentId", "name", "agentName", "capabilities", "description", "status", "tasks"), "agentType")
	if f.content.Get("tasks") != nil {
		p.Knows, p.Holds = true, f.list(f.content, "tasks")
	}
	return one(Order{Register: &p})
}

func leaveAgent(f *frame) []Order { return f.leave(wire.AgentUnregistered) }

// task reads the id of the task that a frame is about, at one of the places where agents
// put it.
func (f *frame) task() string {
	return f.needName(place{f.content, "taskId"}, place{f.top, "taskId"})
}

// within reads the id of the task within which an agent asks for something. The SDK
// names none: then it is the only one that the agent has, and empty otherwise.
func (f *frame) within(names ...string) string {
	task := ""
	for _, n := range names {
		task = first(task, f.name(f.content, n))
	}
	if task = first(task, f.name(f.top, "taskId")); task != "" {
		return task
	}
	return f.place(f.in.OnlyTask)
}

// place returns the task to which a request is given that names none: that of its first
// time, if this is a repeat.
func (f *frame) place(guess string) string {
	request := f.request()
	if request == "" {
		return guess
	}
	if f.in.Placed != nil {
		if task, known := f.in.Placed(request); known {
			return task
		}
	}
	f.placed = &Placement{Request: request, Task: guess}
	return guess
}

// agentResult reads the end of a task. The described form names the task by the id of
// the frame that it answers, which is the task's.
func agentResult(f *frame) []Order {
	task := f.needName(place{f.content, "taskId"}, place{f.top, "taskId"}, place{f.top, "requestId"})
	r := dialect.FinishTask{TaskID: task, AgentID: f.in.Participant.ID, Result: orNull(f.content.Get("result"))}
	if f.kind == wire.AgentResponse && f.content.Get("result") == nil {
		r.Result = orNull(f.content.Get("data"))
	}
	failed := f.word(f.content, "status") == statusFailed
	why, isFailure := failureOf(r.Result)
	if truthy(f.content.Get("error")) {
		why, isFailure = failureIn(f.content.Members), true
	}
	if failed || isFailure {
		fail(&r, why)
	}
	return f.tell(task, r)
}

// fail makes a result a failure.
func fail(r *dialect.FinishTask, why failure) {
	r.Failed = true
	r.Code = first(why.code, string(fault.TaskFailed))
	r.Error = first(why.text, fault.Lookup(fault.TaskFailed).Message)
	r.Details = why.details
	if _, same := failureOf(r.Result); same || string(r.Result) == "null" {
		r.Result = nil
	}
}

func taskError(f *frame) []Order {
	task := f.task()
	f.need(f.content, "error")
	r := dialect.FinishTask{TaskID: task, AgentID: f.in.Participant.ID}
	fail(&r, failureIn(f.content.Members))
	return f.tell(task, r)
}

func taskStatus(f *frame) []Order {
	task := f.task()
	r := dialect.ReportTask{TaskID: task, AgentID: f.in.Participant.ID, Status: f.word(f.content, "status"), Progress: f.content.Get("progress")}
	if r.Status == "" {
		f.Wrong("content.status", "started, running, completed or failed", f.content.Get("status"))
	}
	if raw := f.content.Get("error"); truthy(raw) {
		r.Error = errorText(raw)
	}
	return f.tell(task, r)
}

func notifyTask(f *frame) []Order {
	c, task := f.content, f.task()
	n := dialect.NotifyTask{
		TaskID: task, AgentID: f.in.Participant.ID, RequestID: f.id, Level: f.word(c, "level"), Message: f.need(c, "message"), Data: c.Get("data"),
	}
	n.NotificationType = first(f.word(c, "notificationType"), typeIn(n.Message), "info")
	if inner, ok := strict.Members(n.Message); ok && n.Data == nil && len(inner["data"]) > 0 {
		n.Data = inner["data"]
	}
	n.Level = first(n.Level, levelOf(n.NotificationType))
	return append(f.tell(task, n), f.say(wire.TaskMessageReceived, wire.TaskMessageReceivedContent{TaskID: task, Status: statusReceived})...)
}

// levelOf returns the level of a notification that says none.
func levelOf(notificationType string) string {
	switch notificationType {
	case "warning", "error", "debug":
		return notificationType
	}
	return "info"
}

// unasked begins the id of a question whose frame has none: no answer refers to it.
const unasked = "unasked_"

// askTask reads a question, in either form: as members of the content, or in
// content.request, which may be anything.
func askTask(f *frame) []Order {
	c, task := f.content, f.task()
	q := dialect.AskTask{
		TaskID: task, AgentID: f.in.Participant.ID, RequestID: first(f.id, unasked+f.in.NewID()), MessageType: f.word(c, "messageType"),
		Message: c.Get("message"), Options: c.Get("options"), TimeoutMS: f.wait(c, "timeout"),
	}
	switch request := c.Get("request"); {
	case q.Message == nil && request == nil:
		f.Wrong("content.message", "present, or a request", nil)
	case q.Message == nil:
		unfold(&q, request)
	}
	q.MessageType = first(q.MessageType, "input_request")
	return f.tell(task, q)
}

// unfold reads a request: an object with a message is a question in the described form,
// if that holds all of it; anything else is the message itself.
func unfold(q *dialect.AskTask, request json.RawMessage) {
	q.Message = request
	m, ok := strict.Members(request)
	inner := object{Members: m}
	if !ok || inner.Get("message") == nil || rest(inner, "message", "messageType", "type", "options", "timeout") != nil {
		return
	}
	q.Message = inner.Get("message")
	if q.Options == nil {
		q.Options = inner.Get("options")
	}
	for _, name := range []string{"messageType", "type"} {
		if s, _ := strict.Text(inner.Get(name)); len(s) <= wire.MaxWord {
			q.MessageType = first(q.MessageType, s)
		}
	}
	var ms int64
	if q.TimeoutMS == 0 && json.Unmarshal(inner.Get("timeout"), &ms) == nil && ms > 0 && ms <= wire.MaxWait {
		q.TimeoutMS = ms
	}
}

func listServices(f *frame) []Order { return ask(dialect.ListServices(f.filter("type"))) }

func serviceTools(f *frame) []Order {
	return ask(dialect.ListTools{Kind: kindService, Server: f.needName(f.here("serviceId", "service")...)})
}

func agentService(f *frame) []Order {
	return f.call(f.tool(kindService, f.here("serviceId", "service"), f.here("toolId", "toolName", "functionName", "operation"), "params", "parameters"))
}

func agentMCP(f *frame) []Order {
	return f.call(f.tool(kindMCP, f.here("serverId"), f.here("toolName", "toolId"), "parameters", "params"))
}

// call calls a tool within a task, or outside of any.
func (f *frame) call(r command.ToolRequest) []Order {
	r.TaskID, r.AgentID = f.within("taskId", "parentTaskId"), f.in.Participant.ID
	if r.TaskID == "" {
		return f.run(r)
	}
	return f.tell(r.TaskID, dialect.CallTool(r))
}

// agentRequest reads a request for a child task.
func agentRequest(f *frame) []Order {
	c := f.content
	s := command.SpawnChild{
		TaskID: first(f.name(c, "parentTaskId"), f.name(c, "taskId"), f.name(f.top, "taskId")), AgentID: f.in.Participant.ID, AgentName: f.in.Participant.Name, RequestID: f.id, ChildID: f.stable("task"),
		TargetID: f.name(c, "targetAgentId"), TaskType: f.word(c, "taskType"), Description: f.text(c, "description", 0, wire.MaxText),
		Data: f.need(c, "taskData"), TimeoutMS: f.wait(c, "timeout"),
	}
	data, _ := strict.Members(s.Data)
	for _, name := range []string{"taskType", "type"} {
		if word, _ := strict.Text(data[name]); len(word) <= wire.MaxWord {
			s.TaskType = first(s.TaskType, word)
		}
	}
	s.TargetName = first(f.name(c, "targetAgent"), f.name(c, "targetAgentName"))
	if s.TargetName == "" && s.TargetID == "" {
		f.Wrong("content.targetAgent", "the name of an agent", nil)
	}
	if s.TaskID == "" {
		s.TaskID, s.Inferred = f.place(f.in.LastTask), true
	}
	if s.TaskID == "" {
		return ask(dialect.Submit(s.Apart()))
	}
	return f.tell(s.TaskID, dialect.SpawnTask(s))
}

// orNull returns raw, or null without a value.
func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
