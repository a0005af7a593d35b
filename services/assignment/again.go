package assignment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// handled is the event by which a request of a participant was carried out, with the id of the
// child, the call, the question or the client that the event names.
type handled struct {
	seq  uint64
	name string // id of the event
	kind event.Type
	id   string
}

// lasting are the requests that are the same in every attempt: those of clients.
var lasting = map[id.Name]bool{command.MessageTask: true, command.CancelTask: true}

// requestOf returns the name under which a repeat of the command is recognized, empty if
// it cannot be repeated. An agent that gets the task again may number its requests from
// the beginning, so its requests are known within their attempt.
func (s *State) requestOf(c command.Command) string {
	if c.Request == "" || lasting[c.Verb] {
		return c.Request
	}
	return fmt.Sprintf("%s/%d", c.Request, s.head.Attempt)
}

// by reports whether this very command has carried out the request: it was delivered again, or
// its outcome is requested again.
func (h handled) by(c command.Command) bool {
	return strings.HasPrefix(h.name, c.ID+".") || h.id == derived("call_", c)
}

// repeated answers a request that an earlier command carried out, from the log. Work in progress
// gets no answer yet: its end answers both requests. repeated adds no other event, because a later
// attempt of the request would carry another id.
func (s *State) repeated(c command.Command) (d decision.Decision, known bool) {
	h, known := s.requests[s.requestOf(c)]
	if !known || h.by(c) {
		return decision.Decision{}, false
	}
	switch h.kind {
	case event.TaskFinished:
		if c.Verb == command.CancelTask {
			d.Direct = s.cancelled(c)
		}
	case event.TaskMessaged:
		if h.id != "" { // of a client, and of no viewer
			d.Again = []uint64{h.seq}
		}
	case event.TaskAsked:
		d.Again = told(s.closings[h.seq])
	case event.ChildCreated:
		d.Again = s.childAgain(h.id)
	case event.CallStarted:
		if call := s.calls[h.id]; call != nil {
			d.Again = told(call.ended)
		}
	default: // The event that followed has no answer.
	}
	return d, true
}

// childAgain returns the events that answer the request for a child.
func (s *State) childAgain(childID string) []uint64 {
	c := s.children[childID]
	if c == nil {
		return nil
	}
	return append([]uint64{c.began}, told(c.ended)...)
}

// told returns the event as a list, empty for none.
func told(seq uint64) []uint64 {
	if seq == 0 {
		return nil
	}
	return []uint64{seq}
}

// note remembers which request an event has carried out.
func (s *State) note(e event.Event) error {
	if e.Request == "" {
		return nil
	}
	h := handled{seq: e.Sequence, name: e.ID, kind: e.Type}
	switch e.Type {
	case event.TaskMessaged, event.ChildCreated, event.CallStarted:
		var d struct {
			ChildID string `json:"child_id"`
			CallID  string `json:"call_id"`
			From    string `json:"from"`
		}
		if err := e.Decode(&d); err != nil {
			return err
		}
		h.id = d.ChildID + d.CallID + d.From // it has one of them
	default:
	}
	s.requests[e.Request] = h
	return nil
}

// childOf returns the id of the child that an agent requests: the command's proposal, unless a
// child of an earlier attempt has it.
func (s *State) childOf(d command.SpawnChild) string {
	if c := s.children[d.ChildID]; c != nil && c.attempt < s.head.Attempt {
		return childAt(d.ChildID, s.head.Attempt)
	}
	return d.ChildID
}

// childAt returns the id of a child in an attempt whose proposed id is taken.
func childAt(proposed string, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", proposed, attempt))
	h := hex.EncodeToString(sum[:16])
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

// maxAttempts is more than any task may have.
const maxAttempts = 100

// childMade returns the id of the newest child that was made for the agent's request,
// empty if none was.
func (s *State) childMade(d command.SpawnChild) string {
	for attempt := min(s.head.Attempt, maxAttempts); attempt > 1; attempt-- {
		if childID := childAt(d.ChildID, attempt); s.children[childID] != nil {
			return childID
		}
	}
	if s.children[d.ChildID] == nil {
		return ""
	}
	return d.ChildID
}
