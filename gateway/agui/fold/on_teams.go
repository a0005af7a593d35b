package fold

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/internal/jobs"
	"github.com/waggle-dev/waggle/gateway/narrate"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// teamActivity is the id of the activity that shows the team.
const teamActivity = "team"

// become changes the status of a member, or of the team itself without a route. The activity shows it while a stretch is open.
func (t *Thread) become(route, status string) {
	m := t.team
	path := "/status"
	if route == "" {
		if m.status == status {
			return
		}
		m.status = status
	} else {
		i := slices.IndexFunc(m.members, func(p placed) bool { return p.Route == route })
		if i < 0 || m.members[i].Status == status {
			return
		}
		m.members = slices.Clone(m.members)
		m.members[i].Status, path = status, "/members/"+strconv.Itoa(i)+"/status"
	}
	if t.Open() != "" {
		t.change(teamActivity, []wire.Operation{{Op: "replace", Path: path, Value: status}}, t.teamShown())
	} else if t.run != nil {
		if a := t.run.activity(teamActivity); a != nil {
			a.content, a.within = t.teamShown(), ""
			t.keep(a)
		}
	}
}

// teamShown is the content of the team's activity.
func (t *Thread) teamShown() any {
	return struct {
		Status  string   `json:"status"`
		Members []placed `json:"members"`
	}{t.team.status, append([]placed{}, t.team.members...)}
}

// board shows the board of the team at a route.
func (t *Thread) board(route string, patch []wire.Operation) {
	id := joined("board", route)
	content := members("team", route)
	content["tasks"] = t.team.boards[route]
	if patch == nil || t.run.activity(id) == nil {
		t.show(id, wire.ActivityBoard, "", content)
		return
	}
	t.change(id, patch, content)
}

func teamCreated(t *Thread, d event.TeamCreatedData) {
	route := t.at.Via.Route
	if _, known := t.team.leads[route]; !known {
		t.team.place(route, d.Definition)
	}
}

// beginTeam begins a run, which lasts until the team is idle again.
func (t *Thread) beginTeam(runID, id, parent string, input *wire.Input) {
	m := t.team
	t.run = newRun(event.RunStartedData{RunID: runID, Mode: event.ModePlan})
	m.told, m.ended, m.stopped, m.code, m.answer = map[string]bool{}, map[string]bool{}, false, "", ""
	t.begin(id, parent, input)
	t.show(teamActivity, wire.ActivityTeam, "", t.teamShown())
	for _, p := range append([]placed{{}}, m.members...) {
		if len(m.boards[p.Route]) > 0 {
			t.board(p.Route, nil)
		}
	}
}

// teamMessage shows a message to a member. The first one of a user while the team is idle begins a run.
func teamMessage(t *Thread, d event.TeamMessageData) {
	m := t.team
	if t.working() && m.told[d.MessageID] { // a team in the team has it, too
		return
	}
	byUser := d.Sender == nil && t.at.Via.Route == ""
	switch {
	case byUser:
		t.told(d)
	case !t.working():
		return
	default:
		t.ensure()
		from := "user"
		if s := d.Sender; s != nil {
			from = first(s.Route, s.Name, s.ID)
		}
		t.custom(wire.CustomMessage, members("messageId", d.MessageID, "from", from, "to", joined(t.at.Via.Route, d.Member, d.Route), "content", d.Content))
	}
	m.told[d.MessageID] = true
	t.run.jobs[letter(d.MessageID)] = jobs.Job{}
}

// told shows a message of a user.
func (t *Thread) told(d event.TeamMessageData) {
	m := event.MessageReceivedData{MessageID: d.MessageID, Content: d.Content, Attachments: d.Attachments, RunSpec: event.RunSpec{Extra: d.Extra}}
	one, id := t.variant.userMessage(m), runIDOf(m)
	if t.past != nil {
		t.past.asked = true
	}
	if !t.working() {
		t.remember(one, false)
		t.beginTeam(d.MessageID, id, input.ExtraOf(d.Extra).ParentRunID, t.variant.inputOf(m))
		return
	}
	t.ensure()
	t.team.stopped = false
	if t.past != nil {
		t.past.stretches[id] = Stretch{Run: t.run.id, Begun: t.seq, Joins: t.run.stretch}
	}
	t.remember(one, false)
	t.emit(wire.Text{Base: t.base(wire.TextMessageStart), MessageID: one.ID, Role: wire.RoleUser})
	if d.Content != "" {
		t.emit(wire.Text{Base: t.base(wire.TextMessageContent), MessageID: one.ID, Delta: d.Content})
	}
	t.emit(wire.Text{Base: t.base(wire.TextMessageEnd), MessageID: one.ID})
}

func teamMessageDropped(t *Thread, d event.TeamMessageDroppedData) {
	if t.working() {
		delete(t.run.jobs, letter(d.MessageID))
	}
}

// teamStatus follows the team, and ends the run when all members have come to rest.
func teamStatus(t *Thread, d event.TeamStatusData) {
	route := t.at.Via.Route
	t.become(route, d.NewStatus)
	if route != "" || !t.working() {
		return
	}
	switch d.NewStatus {
	case event.TeamIdle:
		t.rested("")
	case event.TeamFailed:
		t.rested(first(d.ErrorMessage, "The team has failed."))
	case event.TeamPaused:
		if t.team.stopped && len(t.run.jobs) == 0 {
			t.rested("")
		}
	}
}

// teamStopped notes that people have stopped the team. One that is paused, and has nothing to do, is at rest.
func teamStopped(t *Thread, d event.TeamStoppedData) {
	if t.at.Via.Route != "" || d.Member != "" || !t.working() {
		return
	}
	t.team.stopped = true
	if t.team.status == event.TeamPaused && len(t.run.jobs) == 0 {
		t.rested("")
	}
}

func teamClosed(t *Thread, _ event.TeamClosedData) {
	if t.at.Via.Route != "" {
		return
	}
	if t.working() {
		t.team.stopped = true
		t.rested("")
	}
	t.closed = t.seq
}

// rested ends the run: as cancelled if the team was stopped, as failed with the problem, or else with success.
func (t *Thread) rested(problem string) {
	t.ensure()
	m, e := t.team, &ending{}
	switch {
	case m.stopped:
		e = t.calledOff()
	case problem != "":
		code, _ := narrate.Fault(first(m.code, string(fault.TaskFailed)), problem)
		e.failure = &wire.Failure{Base: t.stamped(wire.RunError, wire.Origin{}), Message: problem, Code: code, Usage: t.run.usage}
	default:
		e.boundary = &wire.Boundary{
			Base: t.stamped(wire.RunFinished, wire.Origin{}), Result: &wire.Result{Outcome: wire.OutcomeSuccess, MessageID: m.answer},
			Outcome: &wire.Outcome{Type: wire.OutcomeSuccess}, Usage: t.run.usage,
		}
	}
	t.conclude(e)
}

func boardCreated(t *Thread, d event.BoardCreatedData) {
	t.team.boards[t.at.Via.Route] = d.Tasks
	if t.working() {
		t.ensure()
		t.board(t.at.Via.Route, nil)
	}
}

func boardUpdated(t *Thread, d event.BoardUpdatedData) {
	route := t.at.Via.Route
	list := t.team.boards[route]
	i := slices.IndexFunc(list, func(b event.BoardTask) bool { return b.TaskID == d.TaskID })
	if i < 0 || list[i].Status == d.NewStatus && len(d.Deliverables) == 0 {
		return
	}
	list = slices.Clone(list)
	list[i].Status = d.NewStatus
	patch := []wire.Operation{{Op: "replace", Path: fmt.Sprintf("/tasks/%d/status", i), Value: d.NewStatus}}
	if len(d.Deliverables) > 0 {
		list[i].FileDeliverables = append(slices.Clone(list[i].FileDeliverables), d.Deliverables...)
		patch = append(patch, wire.Operation{Op: "replace", Path: fmt.Sprintf("/tasks/%d/file_deliverables", i), Value: list[i].FileDeliverables})
	}
	t.team.boards[route] = list
	if t.working() {
		t.ensure()
		t.board(route, patch)
	}
}

// memberReceived notes that a member has a message: its run is due, or waits for the end of another one.
func memberReceived(t *Thread, d event.MessageReceivedData) {
	route := t.at.Via.Route
	if !t.working() || route == "" {
		return
	}
	delete(t.run.jobs, letter(d.MessageID))
	if _, active := t.team.active[d.RunID]; active || t.team.ended[d.RunID] {
		return
	}
	if d.Queued == 0 {
		t.run.jobs[d.RunID] = jobs.Job{}
		return
	}
	t.team.queued[route] = append(slices.Clone(t.team.queued[route]), d.RunID)
}

func memberRefused(t *Thread, d event.MessageRefusedData) {
	if t.working() {
		delete(t.run.jobs, letter(d.MessageID))
	}
}

// memberStarted begins the run of a member, in one of its own if the team has none: a log that has lost what began it.
func memberStarted(t *Thread, d event.RunStartedData) {
	m, route := t.team, t.at.Via.Route
	if _, active := m.active[d.RunID]; active || route == "" || d.RunID == "" || t.working() && m.ended[d.RunID] {
		return
	}
	if !t.working() {
		t.beginTeam(d.RunID, d.RunID, "", nil)
	}
	t.of = d.RunID
	t.ensure()
	m.leave(route, d.RunID)
	delete(t.run.jobs, letter(d.MessageID))
	m.active[d.RunID], t.run.jobs[d.RunID] = route, jobs.Job{}
	if m.speaksFor(route) {
		return
	}
	s := &sub{id: d.RunID, work: d.RunID, name: cutName(route), parent: m.parent(route)}
	t.run.subs = append(t.run.subs, s)
	t.announce(s)
}

// left ends the run of a member, and reports whether it was active.
func (t *Thread) left(runID string, end func(wire.Subagent) wire.Subagent) bool {
	m, route := t.team, t.at.Via.Route
	m.leave(route, runID)
	if !t.working() {
		delete(m.active, runID)
		return false
	}
	m.ended[runID] = true
	if at, active := m.active[runID]; !active || at != route {
		delete(t.run.jobs, runID)
		return false
	}
	t.of = runID
	t.ensure()
	for i := range t.run.questions {
		if q := &t.run.questions[i]; q.run == runID && !q.Over {
			q.Over = true
			t.answerShown(*q)
		}
	}
	t.endSub(runID, end)
	delete(m.active, runID)
	delete(t.run.jobs, runID)
	if next := m.next(route); next != "" {
		t.run.jobs[next] = jobs.Job{}
	}
	return true
}

func memberCompleted(t *Thread, d event.RunCompletedData) {
	leads := t.team.speaksFor(t.team.active[d.RunID])
	active := t.left(d.RunID, func(b wire.Subagent) wire.Subagent {
		b.Type, b.Result, b.Outcome = wire.SubagentFinished, &wire.SubagentResult{Output: d.Content}, &wire.SubagentOutcome{Type: wire.OutcomeSuccess}
		return b
	})
	if !active || !leads {
		return
	}
	if t.team.answer = d.MessageID; d.Content != "" && !t.run.said[d.MessageID] {
		t.team.answer = d.RunID + "-answer"
		t.answer(t.team.answer, d.Content)
	}
}

func memberFailed(t *Thread, d event.RunFailedData) {
	leads := t.team.speaksFor(t.team.active[d.RunID])
	code, message := narrate.Fault(d.Code, d.Message)
	if !t.left(d.RunID, failedSub(message, code)) {
		return
	}
	if t.team.code = code; leads {
		t.custom(wire.CustomError, members("code", code, "message", message))
	}
}

func memberCancelled(t *Thread, d event.RunCancelledData) {
	t.left(d.RunID, failedSub("Cancelled: "+d.Reason, "CANCELLED"))
}

// memberTodos shows the list of a member.
func memberTodos(t *Thread, d event.TodosUpdatedData) {
	t.ensure()
	t.show("todos-"+t.at.Via.AgentID, wire.ActivityTodos, t.by(event.Part{}), map[string]any{"member": t.at.Via.Route, "todos": d.Todos})
}
