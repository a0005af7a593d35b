package fold_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// site writes the log of a team, as the team service would: of Boss, who coordinates, Coder, and the team backend of Lead, who
// coordinates there, and Tester.
type site struct {
	t      testing.TB
	dice   *rand.Rand
	n      int // events, and ids
	out    []event.Event
	status string
	failed bool
	runs   map[string]*seat // by route
	board  []event.BoardTask
	sent   int // messages that no member has
}

// seat is a member.
type seat struct {
	run     string // active; empty = none
	waiting []string
	text    string // the open message
	said    string // its text so far
	asks    string // the open call about which people are asked, or the open question of an agent of the swarm
	called  string // a call without a result
}

var routes = []string{"Boss", "Coder", "backend/Lead", "backend/Tester"}

var siteLog = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal("site")}

func definition() event.TeamDefinition {
	backend := event.TeamDefinition{Name: "backend", Coordinator: "Lead", Members: []event.MemberDefinition{{Name: "Lead"}, {Name: "Tester"}}}
	return event.TeamDefinition{Name: "site", Coordinator: "Boss", Members: []event.MemberDefinition{{Name: "Boss"}, {Name: "Coder", Role: "codes"}, {Name: "backend", Team: &backend}}}
}

func newSite(t testing.TB, seed uint64) *site {
	o := &site{t: t, dice: rand.New(rand.NewPCG(seed, seed)), runs: map[string]*seat{}, status: event.TeamStarting}
	for _, route := range routes {
		o.runs[route] = &seat{}
	}
	o.own(event.TeamCreatedData{TeamID: "site", Definition: definition()})
	o.settle()
	return o
}

func (o *site) event(log subject.Log, seq int, d event.Data) event.Event {
	e, err := event.New(log, fmt.Sprintf("e%d", seq), "test", time.Date(2026, 1, 2, 3, 4, seq, 0, time.UTC), d)
	require.NoError(o.t, err)
	e.Sequence = uint64(seq)
	return e
}

// own appends an event of the team itself.
func (o *site) own(d event.Data) {
	o.n++
	o.out = append(o.out, o.event(siteLog, o.n, d))
}

// of appends an event of a member, in as many layers as the member is deep.
func (o *site) of(route string, d event.Data) {
	team, name, nested := strings.Cut(route, "/")
	if !nested {
		team, name = "", route
	}
	inner := o.event(subject.Log{Tenant: id.DefaultTenant, Kind: id.KindMember, Entity: id.EntityFromExternal(route)}, o.n+1, d)
	wrapped := event.TeamMemberEventData{MemberName: name, MemberID: "agent-" + name, Seq: inner.Sequence, Event: o.raw(inner)}
	if now, ok := event.StatusAfter(inner); ok {
		wrapped.Status = now
	}
	if !nested {
		o.own(wrapped)
		return
	}
	o.nested(team, wrapped)
}

// nested appends an event of the team in the team.
func (o *site) nested(team string, d event.Data) {
	e := o.event(subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal(team)}, o.n+1, d)
	o.own(event.TeamSubTeamEventData{SubTeamNodeName: team, SubTeamID: team, Seq: e.Sequence, SubTeamEvent: o.raw(e)})
}

func (o *site) raw(v any) []byte {
	b, err := plainjson.Marshal(v)
	require.NoError(o.t, err)
	return b
}

func (o *site) id(kind string) string { return fmt.Sprintf("%s%d", kind, o.n+1) }

// settle appends the status of the team if it has changed.
func (o *site) settle() {
	now := event.TeamIdle
	for _, d := range o.runs {
		switch {
		case d.run != "" || o.sent > 0:
			now = event.TeamRunning
		case now == event.TeamIdle && o.failed:
			now = event.TeamFailed
		}
	}
	if now == o.status {
		return
	}
	d := event.TeamStatusData{NewStatus: now, OldStatus: o.status}
	if now == event.TeamFailed {
		d.ErrorMessage = "Coder: it broke"
	}
	o.own(d)
	o.status = now
}

// tell gives a member a message: of a user, or of a colleague.
func (o *site) tell(route, content string, from *event.Sender) {
	m := event.TeamMessageData{MessageID: o.id("m"), Content: content, Sender: from}
	m.Member, m.Route, _ = strings.Cut(route, "/")
	o.own(m)
	o.sent++
	o.settle()
	if team, name, nested := strings.Cut(route, "/"); nested {
		inner := m
		inner.Member, inner.Route = name, ""
		o.nested(team, inner)
	}
	d, run := o.runs[route], "run-"+m.MessageID
	o.of(route, event.MessageReceivedData{MessageID: m.MessageID, RunID: run, Content: content, Sender: from, Queued: len(d.waiting) + min(len(d.run), 1)})
	o.sent--
	if d.run != "" {
		d.waiting = append(d.waiting, run)
		return
	}
	o.start(route, run)
}

func (o *site) start(route, run string) {
	o.runs[route].run, o.failed = run, false
	o.of(route, event.RunStartedData{RunID: run, ExecutionID: "x", MessageID: strings.TrimPrefix(run, "run-"), Content: "go"})
	o.of(route, event.JobStartedData{RunID: run, Attempt: 1, Worker: "w"})
}

// end ends the active run of a member, and begins the next one.
func (o *site) end(route string, d event.Data) {
	seat := o.runs[route]
	if seat.text != "" {
		o.of(route, event.MessageDiscardedData{MessageID: seat.text, RunID: seat.run, Attempt: 1})
	}
	o.of(route, d)
	seat.run, seat.text, seat.asks, seat.called = "", "", "", ""
	if len(seat.waiting) > 0 {
		next := seat.waiting[0]
		seat.waiting = seat.waiting[1:]
		o.start(route, next)
	}
	o.settle()
}

// stop stops all members, the newest of their runs first.
func (o *site) stop() {
	o.own(event.TeamStoppedData{CommandID: o.id("stop"), Reason: "user_request"})
	for _, route := range routes {
		d := o.runs[route]
		for _, run := range slices.Backward(d.waiting) {
			o.of(route, event.RunCancelledData{RunID: run, Reason: "user_request"})
		}
		if d.waiting = nil; d.run != "" {
			o.end(route, event.RunCancelledData{RunID: d.run, Reason: "user_request"})
		}
	}
}

// step has one thing happen at the place of a member.
func (o *site) step(route string) {
	d := o.runs[route]
	switch n := o.dice.IntN(12); {
	case d.run == "":
	case d.asks != "":
		if n < 6 {
			o.answer(route)
		}
	case d.called != "":
		o.of(route, event.ToolCompletedData{CallID: d.called, RunID: d.run, Attempt: 1, Tool: "read", Result: "text"})
		d.called = ""
	case n < 7:
		o.speak(route, n)
	case n == 7:
		to := routes[o.dice.IntN(len(routes))]
		if to != route && strings.Contains(to, "/") == strings.Contains(route, "/") {
			o.tell(to, "do this", &event.Sender{Kind: event.SenderAgent, ID: "a", Name: route, Route: route})
		}
	case n == 8:
		o.plan(route)
	case n == 9:
		o.failed = true
		o.end(route, event.RunFailedData{RunID: d.run, Code: "TASK_EXECUTION_ERROR", Message: "it broke"})
	default:
		o.end(route, event.RunCompletedData{RunID: d.run, MessageID: o.id("t"), Content: "done by " + route})
	}
}

// answer allows or refuses the call about which a member asks.
func (o *site) answer(route string) {
	d := o.runs[route]
	if strings.HasPrefix(d.asks, event.AgentInput) {
		o.answerAgent(route)
		return
	}
	decision := []string{event.DecisionApprove, event.DecisionReject}[o.dice.IntN(2)]
	o.of(route, event.InputAnsweredData{InputID: "approve_" + d.asks, RunID: d.run, CommandID: o.id("x"), Decision: decision, CallID: d.asks, Segment: o.id("s")})
	o.of(route, event.JobStartedData{RunID: d.run, Attempt: 2, Worker: "w", Resumed: true})
	d.asks = ""
}

// answerAgent ends the question of a member that is an agent of the swarm.
func (o *site) answerAgent(route string) {
	d := o.runs[route]
	switch o.dice.IntN(3) {
	case 0:
		o.of(route, event.InputExpiredData{InputID: d.asks, RunID: d.run, Scope: event.ScopeAgent, Withdrawn: o.dice.IntN(2) == 0})
	default:
		o.of(route, event.InputAnsweredData{InputID: d.asks, RunID: d.run, CommandID: o.id("x"), Decision: event.DecisionAnswer, Scope: event.ScopeAgent, Segment: o.id("s")})
	}
	d.asks = ""
}

// speak begins, continues or ends a message of a member: with a call, about which people may be asked.
func (o *site) speak(route string, n int) {
	d := o.runs[route]
	switch {
	case d.text == "" && n < 5:
		d.text, d.said = o.id("t"), ""
		o.of(route, event.MessageStartedData{MessageID: d.text, RunID: d.run, Attempt: 1, Role: event.RoleAssistant})
	case d.text == "" && n == 6:
		d.asks = o.id(event.AgentInput)
		o.of(route, event.InputRequestedData{
			InputID: d.asks, RunID: d.run, Scope: event.ScopeAgent, Summary: "Which?", TimeoutSeconds: 5,
			AgentQuestion: event.AgentQuestion{TaskID: "work", TaskSeq: 3, AgentName: route, Message: []byte(`"Which?"`), Options: []byte(`["a",1]`)},
		})
	case d.text == "":
	case n < 5:
		d.said += "word "
		o.of(route, event.MessageDeltaData{MessageID: d.text, RunID: d.run, Attempt: 1, Text: "word "})
	default:
		call := o.id("c")
		o.of(route, event.MessageCompletedData{MessageID: d.text, RunID: d.run, Attempt: 1, Role: event.RoleAssistant, Content: d.said + "I call.", ToolCalls: []event.ToolCall{{ID: call, Name: "write", Arguments: []byte(`{}`)}}})
		if d.text = ""; n == 5 {
			d.called = call
			o.of(route, event.ToolCalledData{CallID: call, RunID: d.run, Attempt: 1, Tool: "read", Arguments: []byte(`{}`)})
			return
		}
		d.asks = call
		o.of(route, event.InputRequestedData{InputID: "approve_" + call, RunID: d.run, Scope: event.ScopeTool, CallID: call, Tool: "write", Arguments: []byte(`{}`), Attempt: 1})
		o.of(route, event.JobSuspendedData{RunID: d.run, Attempt: 1, Inputs: []string{"approve_" + call}})
	}
}

// plan has the coordinator add to the board, and others work on it.
func (o *site) plan(route string) {
	switch {
	case route == "Boss":
		o.board = append(o.board, event.BoardTask{TaskID: o.id("task"), TaskName: "name", AssigneeName: "Coder", Dependencies: []string{}, FileDeliverables: []event.Deliverable{}, Status: event.BoardNotStarted})
		o.own(event.BoardCreatedData{By: "Boss", Tasks: slices.Clone(o.board)})
	case len(o.board) > 0:
		o.own(event.BoardUpdatedData{TaskID: o.board[0].TaskID, NewStatus: []string{event.BoardInProgress, event.BoardCompleted}[o.dice.IntN(2)], AgentName: "Coder"})
	}
}

// live has n things happen.
func (o *site) live(n int) []event.Event {
	for range n {
		switch k := o.dice.IntN(40); {
		case k < 2, k < 20 && o.status != event.TeamRunning:
			o.tell(routes[o.dice.IntN(len(routes))], "please", nil)
		case k == 39:
			o.stop()
		default:
			o.step(routes[o.dice.IntN(len(routes))])
		}
	}
	return o.out
}
