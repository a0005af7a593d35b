package dialect

import (
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Intent is one thing that a frame asks for in a log. A dialect does not know the service that does it: package binding
// has one table that turns intents into commands, by the kind of the log.
type Intent struct {
	ID      string // of the command, which a repeat with the same id does not cause again
	Request string // the client's id for it, which a repeat under another ID has, too; empty = never repeated
	Member  string // of the team whose log it is: a name, a path of names or an id; empty = the team itself
	Data    IntentData
}

// Action returns the name of the intent, for faults and tests.
func (i Intent) Action() string { return i.Data.action() }

// IntentData is the data of an intent. Its type says which action the intent asks for, so that an action cannot have the
// data of another. The types of this file are all that implement it.
type IntentData interface{ action() string }

// Intents in the log of a run. No kind of log takes all of them.
type (
	// SendMessage gives the run's log a message.
	SendMessage command.UserMessage
	// Answer answers a question.
	Answer command.AnswerQuestion
	// Cancel stops a run.
	Cancel command.CancelRun
	// CancelPlan stops a run that has a plan.
	CancelPlan command.CancelRun
	// CancelStep stops one step of a plan.
	CancelStep command.StepRef
	// RestartStep begins one step of a plan again.
	RestartStep command.StepRef
	// Replan asks for another plan.
	Replan command.ReplanRun
	// PauseTeam holds back the messages for members of a team.
	PauseTeam struct{}
	// ResumeTeam ends a pause.
	ResumeTeam struct{}
)

// Intents in the log of a task of the swarm: of the client that gave it, or of its agent.
type (
	// MessageTask tells the agent of the task something.
	MessageTask command.TaskMessage
	// CancelTask stops the task.
	CancelTask command.CancelTaskData
	// ReportTask reports the status of the task.
	ReportTask command.TaskReport
	// NotifyTask notifies the client.
	NotifyTask command.TaskNotification
	// AskTask asks the client a question.
	AskTask command.TaskQuestion
	// FinishTask ends the task.
	FinishTask command.TaskResult
	// SpawnTask gives a child task to another agent.
	SpawnTask command.SpawnChild
	// CallTool calls a tool within the task.
	CallTool command.ToolRequest
)

func (SendMessage) action() string { return "send_message" }
func (Answer) action() string      { return "answer" }
func (Cancel) action() string      { return "cancel" }
func (CancelPlan) action() string  { return "cancel_plan" }
func (CancelStep) action() string  { return "cancel_step" }
func (RestartStep) action() string { return "restart_step" }
func (Replan) action() string      { return "replan" }
func (PauseTeam) action() string   { return "pause" }
func (ResumeTeam) action() string  { return "resume" }
func (MessageTask) action() string { return "message_task" }
func (CancelTask) action() string  { return "cancel_task" }
func (ReportTask) action() string  { return "report_task" }
func (NotifyTask) action() string  { return "notify_task" }
func (AskTask) action() string     { return "ask_task" }
func (FinishTask) action() string  { return "finish_task" }
func (SpawnTask) action() string   { return "spawn_task" }
func (CallTool) action() string    { return "call_tool" }

// Inquiry is a request of a participant of the swarm that ends with an answer. Its type says what it asks for; the types
// of this file are all that implement it.
type Inquiry interface{ inquiry() string }

// Topic returns the name of an inquiry, for tables and tests.
func Topic(q Inquiry) string { return q.inquiry() }

// Inquiries. The reply to each is that of the request of the same name in proto-schemas/command.
type (
	// ListAgents asks for agents.
	ListAgents command.ParticipantFilter
	// ListServices asks for services.
	ListServices command.ParticipantFilter
	// ListClients asks for clients.
	ListClients command.ParticipantFilter
	// ListServers asks for MCP servers.
	ListServers command.ParticipantFilter
	// ListTools asks for the tools of a service or an MCP server.
	ListTools command.ToolsOf
	// ShowTask asks for a task.
	ShowTask command.TaskRefData
	// Submit gives a task to an agent.
	Submit command.NewTask
	// RunTool calls a tool outside of a task. It may take long: frames after it do not wait.
	RunTool command.ToolRequest
	// SendClient sends a message to another client.
	SendClient command.ClientNote
	// NameClient stores the name of a client.
	NameClient event.InboxRegisteredData
	// OpenClient shows another inbox instead of the one that the connection shows. Of its data ClientID, Token and After
	// count.
	OpenClient command.OpenClientRequest
)

func (ListAgents) inquiry() string   { return "list_agents" }
func (ListServices) inquiry() string { return "list_services" }
func (ListClients) inquiry() string  { return "list_clients" }
func (ListServers) inquiry() string  { return "list_servers" }
func (ListTools) inquiry() string    { return "list_tools" }
func (ShowTask) inquiry() string     { return "show_task" }
func (Submit) inquiry() string       { return "submit" }
func (RunTool) inquiry() string      { return "run_tool" }
func (SendClient) inquiry() string   { return "send_client" }
func (NameClient) inquiry() string   { return "name_client" }
func (OpenClient) inquiry() string   { return "open_inbox" }
