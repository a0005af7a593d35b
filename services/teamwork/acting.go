package teamwork

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// Bounds of the board.
const (
	// maxBoard bounds the tasks on a board: the whole board is in the event that adds
	// to it, with up to 2 KB a task.
	maxBoard = 100
	// maxTaskText bounds a description, in bytes.
	maxTaskText = 1500
	// maxTaskName bounds a name, in bytes.
	maxTaskName = 200
	// maxDeliverables bounds the files of a task.
	maxDeliverables = 16
)

var boardStatuses = []string{
	event.BoardNotStarted, event.BoardQueued, event.BoardInProgress, event.BoardCompleted, event.BoardBlocked, event.BoardFailed,
}

// tools are those of the team, as its members call them.
var tools = map[string]func(acting, command.Command, command.TeamAct, time.Time) (decision.Decision, error){
	command.ToolSendMessage: acting.sendMessage,
	command.ToolCreateTasks: acting.createTasks,
	command.ToolUpdateTask:  acting.updateTask,
	command.ToolListTasks:   acting.listTasks,
}

// acting decides on members' calls of the tools of their team.
type acting struct{ *State }

// act carries out a member's call of a tool of its team, once.
func (ac acting) act(c command.Command, now time.Time) (decision.Decision, error) {
	var a command.TeamAct
	if err := c.Decode(&a); err != nil {
		return decision.Decision{}, err
	}
	if said, done := ac.acts[a.CallID]; done {
		return decision.Decision{Facts: ac.Advance(), Direct: said}, nil
	}
	do, ok := tools[a.Tool]
	switch {
	case !ok:
		return ac.refuse(c, fault.New(fault.ToolNotFound))
	case ac.closing != nil:
		return ac.refuse(c, fault.New(fault.TeamClosed))
	case ac.members[a.Member] == nil:
		return ac.refuse(c, fault.New(fault.MemberNotFound))
	}
	return do(ac, c, a, now)
}

type letterArgs struct {
	Recipient   string `json:"recipient_name"`
	Role        string `json:"recipient_role_name"` // as older definitions call it
	Content     string `json:"content"`
	MessageType string `json:"message_type"`
}

func (l letterArgs) to() string { return orElse(l.Recipient, l.Role) }

func badInput(format string, a ...any) error { return fault.Newf(fault.ToolBadInput, format, a...) }

func (ac acting) sendMessage(c command.Command, a command.TeamAct, _ time.Time) (decision.Decision, error) {
	var args letterArgs
	if json.Unmarshal(a.Arguments, &args) != nil || args.to() == "" || args.Content == "" {
		return ac.refuse(c, badInput("recipient_name and content are needed. Give both as texts."))
	}
	if p, err := ac.roster.find(args.to()); err == nil && p.ID.String() == a.AgentID {
		return ac.refuse(c, badInput("A message to yourself goes nowhere. Choose another recipient."))
	}
	sender := &event.Sender{
		Kind: event.SenderAgent, ID: a.AgentID, Name: a.Member, Route: ac.route(a.Member), MessageType: orElse(args.MessageType, "direct_message"),
	}
	m, err := ac.write(ac.entity.String()+"."+a.CallID, args.to(), args.Content, sender)
	if err != nil {
		return ac.refuse(c, err)
	}
	m.CallID, m.Tainted = a.CallID, a.Tainted || ac.tainted
	return decision.Decision{Facts: []decision.Fact{{ID: a.CallID + ".message", Data: m}}, Direct: event.TeamActedData{
		CallID: a.CallID, Result: "Message sent to " + m.Member + ".",
	}}, nil
}

// newTask is a task as a model writes it: in our form, or in the short one of the
// protocol's document.
type newTask struct {
	ID           string              `json:"id"`
	Name         string              `json:"task_name"`
	Assignee     string              `json:"assignee_name"`
	Description  string              `json:"description"`
	Dependencies []string            `json:"dependencies"`
	Deliverables []event.Deliverable `json:"file_deliverables"`
}

func (ac acting) createTasks(c command.Command, a command.TeamAct, _ time.Time) (decision.Decision, error) {
	var args struct {
		Tasks []newTask `json:"tasks"`
	}
	if json.Unmarshal(a.Arguments, &args) != nil || len(args.Tasks) == 0 {
		return ac.refuse(c, badInput("tasks must be a list of tasks with task_name, assignee_name and description."))
	}
	added, err := ac.newTasks(args.Tasks, a.Member)
	if err != nil {
		return ac.refuse(c, err)
	}
	data := event.BoardCreatedData{CallID: a.CallID, By: a.Member, Tainted: a.Tainted || ac.tainted}
	list := []decision.Fact{{}}
	for _, t := range ac.board {
		data.Tasks = append(data.Tasks, t.BoardTask)
		if t.Status != event.BoardNotStarted {
			list = append(list, decision.Fact{ID: a.CallID + ".again." + t.TaskID, Data: event.BoardUpdatedData{
				TaskID: t.TaskID, NewStatus: t.Status, AgentName: Notifier, Repeated: true,
			}})
		}
	}
	for _, t := range added {
		data.Tasks, data.Added = append(data.Tasks, t), append(data.Added, t.TaskID)
	}
	list[0] = decision.Fact{ID: a.CallID + ".tasks", Data: data}
	return decision.Decision{Facts: list, Direct: event.TeamActedData{CallID: a.CallID, Result: created(data)}}, nil
}

// newTasks returns the tasks as they will stand on the board.
func (ac acting) newTasks(list []newTask, by string) ([]event.BoardTask, error) {
	if len(ac.board)+len(list) > maxBoard {
		return nil, badInput("The board holds %d tasks. Make fewer.", maxBoard)
	}
	ids := map[string]string{} // by name, and by the model's own id
	for i := range list {
		t := &list[i]
		t.Name = orElse(t.Name, t.ID)
		if err := ac.checkTask(i, *t, by); err != nil {
			return nil, err
		}
		if ids[t.Name] != "" || ac.task(t.Name) != nil {
			return nil, badInput("tasks[%d].task_name: the board has a task %q already. Use another name.", i, t.Name)
		}
		ids[t.Name] = fmt.Sprintf("task_%04d", len(ac.board)+i+1)
		if t.ID != "" {
			ids[t.ID] = ids[t.Name]
		}
	}
	out := make([]event.BoardTask, 0, len(list))
	for i, t := range list {
		b := event.BoardTask{
			TaskID: ids[t.Name], TaskName: t.Name, AssigneeName: orElse(t.Assignee, by), Description: t.Description,
			Dependencies: []string{}, FileDeliverables: append([]event.Deliverable{}, t.Deliverables...), Status: event.BoardNotStarted,
		}
		for _, name := range t.Dependencies {
			dep := ids[name]
			if known := ac.task(name); dep == "" && known != nil {
				dep = known.TaskID
			}
			if dep == "" || dep == b.TaskID {
				return nil, badInput("tasks[%d].dependencies: the board has no other task %q. Use the name or id of one.", i, name)
			}
			if !slices.Contains(b.Dependencies, dep) {
				b.Dependencies = append(b.Dependencies, dep)
			}
		}
		out = append(out, b)
	}
	if circular(out) {
		return nil, badInput("tasks: some wait for each other in a circle. Take one of the dependencies out.")
	}
	return out, nil
}

func (ac acting) checkTask(i int, t newTask, by string) error {
	switch {
	case t.Name == "" || len(t.Name) > maxTaskName:
		return badInput("tasks[%d].task_name must have 1 to %d bytes.", i, maxTaskName)
	case len(t.Description) > maxTaskText:
		return badInput("tasks[%d].description must be shorter than %d bytes.", i, maxTaskText)
	case len(t.Deliverables) > maxDeliverables:
		return badInput("tasks[%d].file_deliverables: %d files at most.", i, maxDeliverables)
	}
	if _, err := ac.roster.find(orElse(t.Assignee, by)); err != nil {
		return badInput("tasks[%d].assignee_name: the team has no member %q.", i, t.Assignee)
	}
	return nil
}

// circular reports whether tasks depend on each other in a circle. Tasks that were on the board
// before cannot depend on these.
func circular(list []event.BoardTask) bool {
	open := map[string][]string{}
	for _, t := range list {
		open[t.TaskID] = t.Dependencies
	}
	for {
		before := len(open)
		for id, deps := range open {
			if !slices.ContainsFunc(deps, func(d string) bool { _, waits := open[d]; return waits }) {
				delete(open, id)
			}
		}
		if len(open) == before {
			return before > 0
		}
	}
}

type taskArgs struct {
	TaskID       string              `json:"task_id"`
	TaskName     string              `json:"task_name"`
	NewStatus    string              `json:"new_status"`
	Status       string              `json:"status"`
	Deliverables []event.Deliverable `json:"deliverables"`
}

func (a taskArgs) task() string { return orElse(a.TaskID, a.TaskName) }

func (ac acting) updateTask(c command.Command, a command.TeamAct, _ time.Time) (decision.Decision, error) {
	var args taskArgs
	if json.Unmarshal(a.Arguments, &args) != nil {
		return ac.refuse(c, badInput("task_id and new_status are needed. Give both as texts."))
	}
	t, status := ac.task(args.task()), orElse(args.NewStatus, args.Status)
	switch {
	case t == nil:
		return ac.refuse(c, badInput("The board has no such task. Use list_tasks to see it."))
	case !slices.Contains(boardStatuses, status):
		return ac.refuse(c, badInput("new_status must be one of %s.", strings.Join(boardStatuses, ", ")))
	case len(t.FileDeliverables)+len(args.Deliverables) > maxDeliverables:
		return ac.refuse(c, badInput("deliverables: %d files at most.", maxDeliverables))
	}
	for i := range args.Deliverables {
		args.Deliverables[i].AuthorAgentName = orElse(args.Deliverables[i].AuthorAgentName, a.Member)
	}
	return decision.Decision{
		Facts: []decision.Fact{{ID: a.CallID + ".updated", Data: event.BoardUpdatedData{
			CallID: a.CallID, TaskID: t.TaskID, NewStatus: status, AgentName: a.Member, Deliverables: args.Deliverables,
		}}},
		Direct: event.TeamActedData{CallID: a.CallID, Result: fmt.Sprintf("%s is %s.", t.TaskID, status)},
	}, nil
}

func (ac acting) listTasks(_ command.Command, a command.TeamAct, _ time.Time) (decision.Decision, error) {
	raw, err := json.Marshal(ac.tasks())
	if err != nil {
		return decision.Decision{}, fmt.Errorf("encode the board: %w", err)
	}
	return decision.Decision{Facts: ac.Advance(), Direct: event.TeamActedData{CallID: a.CallID, Result: string(raw), Untrusted: ac.tainted}}, nil
}

// Forward returns the parent team for a member's call that only the parent can carry out: a message
// for one of its members, or an update of a task that this team's own board does not have.
func (s *State) Forward(a command.TeamAct) (to event.TeamParent, ok bool) {
	if s.head.Parent == nil {
		return to, false
	}
	switch a.Tool {
	case command.ToolSendMessage:
		var args letterArgs
		if json.Unmarshal(a.Arguments, &args) == nil {
			_, err := s.roster.find(args.to())
			ok = err != nil
		}
	case command.ToolUpdateTask:
		var args taskArgs
		ok = json.Unmarshal(a.Arguments, &args) == nil && s.task(args.task()) == nil
	}
	return *s.head.Parent, ok
}
