package stream

import (
	"bytes"
	"sync"

	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// maxQuestions bounds the questions that a connection remembers: the newest ones are answered.
const maxQuestions = 256

// Question is a question as a connection has shown it.
type Question struct {
	CallID string // of scope tool
	Digest string // of scope tool: of the tool and the arguments that were shown
}

// Questions remembers the questions that a connection has shown, so that an approval is signed for exactly the call that
// the person has seen. It is safe for concurrent use.
type Questions struct {
	mu    sync.Mutex
	asked map[asked]Question
	order []asked
}

// asked names a question in a log, by its id or by its call.
type asked struct {
	log  id.Entity // of a member: the team above all others
	name string
}

// Find returns the question of that id or call in a session or a team.
func (q *Questions) Find(log id.Entity, name string) (Question, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found, ok := q.asked[asked{outermost(log), name}]
	return found, ok
}

// Note remembers the question that the event of the log asks, if it asks one.
func (q *Questions) Note(log id.Entity, e event.Event) {
	switch {
	case q == nil:
		return
	case e.Type == event.InputRequested:
	case (e.Type == event.TeamMemberEvent || e.Type == event.TeamSubTeamEvent) && bytes.Contains(e.Data, []byte(event.InputRequested)):
		e = event.Unwrap(e)
	}
	if e.Type != event.InputRequested {
		return
	}
	d, err := event.As[event.InputRequestedData](e)
	if err != nil {
		return
	}
	found := Question{}
	if d.Scope == event.ScopeTool {
		found = Question{CallID: d.CallID, Digest: signature.Digest(d.Tool, d.Arguments)}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, name := range []string{d.InputID, d.CallID} {
		if name != "" {
			q.add(asked{outermost(log), name}, found)
		}
	}
}

// add remembers a question and forgets the oldest one beyond the bound. mu is held.
func (q *Questions) add(name asked, found Question) {
	if q.asked == nil {
		q.asked = map[asked]Question{}
	}
	if _, known := q.asked[name]; !known {
		q.order = append(q.order, name)
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
