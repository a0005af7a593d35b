package stream

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// maxQuestions bounds the questions that a connection remembers: the newest ones are answered.
const maxQuestions = 256

// Question is a question as a connection has shown it.
type Question struct {
	CallID   string // of scope tool
	Tool     string // of scope tool
	Digest   string // of scope tool: of the tool and the arguments that were shown
	Disputed bool   // under its name several calls were shown
}

// Questions remembers the questions that a connection has shown, so that an approval is signed for exactly the call that
// the person has seen. It is safe for concurrent use.
type Questions struct {
	only  string // empty: all
	mu    sync.Mutex
	asked map[asked]Question
	order []asked
	open  []openQuestion // the oldest first
}

// openQuestion is one that the connection has shown, and whose end it has not shown.
type openQuestion struct {
	log               id.Entity
	input, run, scope string
}

// asked names a question in a log, by its id or by its call.
type asked struct {
	log          id.Entity // of a member: the team above all others
	agent, route string    // of the member that asks
	name         string
}

// OnlyQuestion returns an empty memory for the questions with that id or call alone.
func OnlyQuestion(name string) *Questions { return &Questions{only: name} }

// Find returns the question of that id or call in a session or a team. The member that asks is named by its id or its
// route, and counts only if one of several members asks under the name.
func (q *Questions) Find(log id.Entity, member, name string) (found Question, ok bool) {
	if q == nil {
		return found, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var all, of []Question
	for at, one := range q.asked {
		if at.log != outermost(log) || at.name != name {
			continue
		}
		if all = append(all, one); member != "" && (member == at.agent || member == at.route) {
			of = append(of, one)
		}
	}
	if len(of) == 0 {
		of = all
	}
	for i, one := range of {
		if i > 0 && one != found {
			return Question{Disputed: true}, true
		}
		found = one
	}
	return found, len(of) > 0
}

// Open returns the oldest open question of a session that was shown, with its scope, and an empty id if none is open.
func (q *Questions) Open(session id.Entity) (input, scope string) {
	if q == nil {
		return "", ""
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.open {
		if one.log == session {
			return one.input, one.scope
		}
	}
	return "", ""
}

// concerns reports whether an event may ask or end a question.
func concerns(e event.Event) bool {
	switch e.Type {
	case event.InputRequested, event.InputAnswered, event.InputExpired, event.RunCompleted, event.RunFailed, event.RunCancelled:
		return true
	case event.TeamMemberEvent, event.TeamSubTeamEvent:
		return bytes.Contains(e.Data, []byte(event.InputRequested))
	}
	return false
}

// showing holds back every reader until shown is called, if an entry concerns a question, and reports whether one does. A client
// may answer a frame before the stream that queued it has returned: by then its question has to be known.
func (q *Questions) showing(batch []*eventlog.Entry) bool {
	if q == nil || !slices.ContainsFunc(batch, func(e *eventlog.Entry) bool { return concerns(e.Event) }) {
		return false
	}
	q.mu.Lock()
	return true
}

// shown notes the entries of a log that the client was sent, after showing.
func (q *Questions) shown(log id.Entity, sent []*eventlog.Entry) {
	defer q.mu.Unlock()
	for _, e := range sent {
		q.note(log, e.Event)
	}
}

// ended forgets the open questions that the event of the log ends. mu is held.
func (q *Questions) ended(log id.Entity, e event.Event) {
	switch e.Type {
	case event.InputAnswered, event.InputExpired, event.RunCompleted, event.RunFailed, event.RunCancelled:
	default:
		return
	}
	if len(q.open) == 0 { // as nearly always: the event is not decoded
		return
	}
	var d struct {
		InputID string `json:"input_id"`
		RunID   string `json:"run_id"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return
	}
	q.open = slices.DeleteFunc(q.open, func(one openQuestion) bool {
		return one.log == log && (d.InputID != "" && one.input == d.InputID || d.InputID == "" && one.run == d.RunID)
	})
}

// questionOf returns the question that an event asks, with the event of the member's log if a team's event has it inside.
func questionOf(e event.Event) (event.Event, event.InputRequestedData, bool) {
	if (e.Type == event.TeamMemberEvent || e.Type == event.TeamSubTeamEvent) && concerns(e) {
		e = event.Unwrap(e)
	}
	if e.Type != event.InputRequested {
		return e, event.InputRequestedData{}, false
	}
	d, err := event.As[event.InputRequestedData](e)
	return e, d, err == nil
}

// Note remembers the question that the event of the log asks, if it asks one.
func (q *Questions) Note(log id.Entity, e event.Event) {
	if q == nil || !concerns(e) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.note(log, e)
}

// note is Note with mu held.
func (q *Questions) note(log id.Entity, e event.Event) {
	q.ended(log, e)
	e, d, asks := questionOf(e)
	if !asks {
		return
	}
	found := Question{}
	if d.Scope == event.ScopeTool {
		found = Question{CallID: d.CallID, Tool: d.Tool, Digest: signature.Digest(d.Tool, d.Arguments)}
	}
	at := asked{log: outermost(log), agent: e.Via.AgentID, route: e.Via.Route}
	if at.log != log {
		at.agent = log.String()
	}
	if at.log == log && d.Scope != event.ScopeClientTool && len(q.open) < maxQuestions {
		q.open = append(q.open, openQuestion{log: log, input: d.InputID, run: d.RunID, scope: d.Scope})
	}
	for _, at.name = range []string{d.InputID, d.CallID} {
		if at.name != "" && (q.only == "" || q.only == at.name) {
			q.add(at, found)
		}
	}
}

// add remembers a question and forgets the oldest one beyond the bound. A question never changes: one that asks about
// another call under the same name leaves open which of them a person means. mu is held.
func (q *Questions) add(name asked, found Question) {
	if q.asked == nil {
		q.asked = map[asked]Question{}
	}
	switch before, known := q.asked[name]; {
	case !known:
		q.order = append(q.order, name)
	case before != found:
		found = Question{Disputed: true}
	}
	q.asked[name] = found
	if len(q.order) > maxQuestions {
		delete(q.asked, q.order[0])
		q.order = q.order[1:]
	}
}

// outermost returns the team that has the member or nested team, at any depth, and any other id unchanged.
func outermost(log id.Entity) id.Entity {
	for {
		team, ok := id.TeamOf(log)
		if !ok {
			return log
		}
		log = team
	}
}
