package swarm

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

// Names of events.
const (
	EventConnected        = "connected"              // no content
	EventDisconnected     = "disconnected"           // no content; Err says why, nil: Close was called
	EventError            = "error"                  // *Error: one that answers no call, or a frame that cannot be read
	EventWelcome          = "welcome"                // Welcome
	EventTaskCreated      = "task.created"           // TaskCreated
	EventTaskResult       = "task.result"            // TaskResult
	EventTaskStatus       = "task.status"            // TaskStatus: the answer to a request, or a change
	EventTaskError        = "task.error"             // TaskFailure
	EventTaskNotification = "task.notification"      // TaskNotification
	EventTaskQuestion     = "task.requestmessage"    // TaskQuestion
	EventChildTaskCreated = "task.childtask.created" // ChildTaskCreated
	EventChildTaskStatus  = "task.childtask.status"  // ChildTaskStatus
	EventAgentList        = "agent.list"             // []AgentEntry
	EventServiceStarted   = "service.started"        // ServiceStarted
	EventServiceNotified  = "service.notification"   // ServiceNotification
	EventServiceCompleted = "service.completed"      // ServiceCompleted
	EventMCPServerList    = "mcp.server.list"        // []ServerEntry
	EventMCPExecution     = "mcp.task.execution"     // MCPExecution
	EventClientMessage    = "client.message"         // ClientNote
	EventRawMessage       = "raw-message"            // no content: every message, before the event that it is
)

// Event is something that has happened. Which type Content has follows from Name, and
// stands beside each name.
type Event struct {
	Name    string
	Content any
	Message Message // of the server; zero for events of the client itself
	Err     error   // of disconnected and error
}

// kinds are the events that messages are.
var kinds = map[string]func(Message) (Event, error){
	asp.ClientWelcome:      content[Welcome](EventWelcome),
	asp.TaskCreateResponse: content[TaskCreated](EventTaskCreated),
	asp.TaskResult:         content[TaskResult](EventTaskResult),
	asp.TaskStatusResponse: content[TaskStatus](EventTaskStatus),
	asp.TaskError:          content[TaskFailure](EventTaskError),
	asp.TaskNotification:   content[TaskNotification](EventTaskNotification),
	asp.TaskRequestMessage: content[TaskQuestion](EventTaskQuestion),
	asp.ChildTaskCreated:   content[ChildTaskCreated](EventChildTaskCreated),
	asp.ChildTaskStatus:    content[ChildTaskStatus](EventChildTaskStatus),
	asp.ServiceStarted:     content[ServiceStarted](EventServiceStarted),
	asp.ServiceNotified:    content[ServiceNotification](EventServiceNotified),
	asp.ServiceCompleted:   content[ServiceCompleted](EventServiceCompleted),
	asp.MCPTaskExecution:   content[MCPExecution](EventMCPExecution),
	asp.ClientMessage:      content[ClientNote](EventClientMessage),
	asp.AgentListResponse: func(m Message) (Event, error) {
		l, err := as[asp.AgentListContent](m)
		return Event{Name: EventAgentList, Content: l.Agents}, err
	},
	asp.ServerListResponse: func(m Message) (Event, error) {
		l, err := as[asp.ServerListContent](m)
		return Event{Name: EventMCPServerList, Content: l.Servers}, err
	},
	asp.Error: func(m Message) (Event, error) {
		e := errorOf(m)
		return Event{Name: EventError, Content: e, Err: e}, nil
	},
}

// content reads the content of a message for an event.
func content[T any](name string) func(Message) (Event, error) {
	return func(m Message) (Event, error) {
		c, err := as[T](m)
		return Event{Name: name, Content: c}, err
	}
}

// show shows an item to OnEvent.
func (c *Client) show(i item) {
	if i.message == nil {
		c.opt.OnEvent(Event{Name: i.name, Err: i.err})
		return
	}
	m := *i.message
	c.opt.OnEvent(Event{Name: EventRawMessage, Message: m})
	read := kinds[m.Type]
	if read == nil {
		return // an answer that only its caller knows what to do with, or a newer server
	}
	e, err := read(m)
	if err != nil {
		e = Event{Name: EventError, Content: &Error{Message: err.Error()}, Err: err}
	}
	e.Message = m
	c.opt.OnEvent(e)
	if n, ok := e.Content.(TaskNotification); ok && n.NotificationType == Status {
		c.showStatus(m, n)
	}
}

// showStatus shows that the status of a task has changed, which the server tells by a
// notification.
func (c *Client) showStatus(m Message, n TaskNotification) {
	var d asp.StatusData
	if json.Unmarshal(n.Data, &d) != nil || d.Status == "" {
		return // an agent's own notification of that type
	}
	c.opt.OnEvent(Event{Name: EventTaskStatus, Message: m, Content: TaskStatus{
		TaskID: n.TaskID, Status: d.Status, AgentID: n.AgentID, AgentName: n.AgentName, Progress: d.Progress,
	}})
}
