package conversation

import (
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// lifecycle decides on the commands that open and end a log, and its runs.
type lifecycle struct{ handler }

func (h lifecycle) open() (decision.Decision, error) {
	if !h.s.Created.IsZero() {
		return decision.Decision{}, nil
	}
	var d command.OpenSession
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	if h.c.Principal != "" {
		d.Owner = "" // it opens its own
	}
	return decision.Of(decision.Fact{ID: h.c.ID + ".created", Data: event.SessionCreatedData{
		Dialect: d.Dialect, Principal: h.c.Principal, Owner: d.Owner, Preferences: d.Preferences,
	}}), nil
}

// create opens the log of a member of a team, once.
func (h lifecycle) create() (decision.Decision, error) {
	if !h.s.Created.IsZero() {
		return h.goOn()
	}
	var d event.MemberCreatedData
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	d.Principal = orElse(d.Principal, h.c.Principal)
	return decision.Of(decision.Fact{ID: h.c.ID + ".created", Data: d}), nil
}

// noteTodos replaces the agent's list of things to do. One call does it once.
func (h lifecycle) noteTodos() (decision.Decision, error) {
	var d event.TodosUpdatedData
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	eventID := orElse(d.CallID, h.c.ID) + ".todos"
	switch {
	case h.s.Created.IsZero():
		return decision.Decision{}, fault.New(fault.AgentNotFound)
	case h.s.Closed, h.s.known.has(eventID):
		return h.goOn()
	}
	return decision.Of(decision.Fact{ID: eventID, Data: d}), nil
}

func (h lifecycle) close() (decision.Decision, error) {
	if h.s.Created.IsZero() || h.s.Closed {
		return decision.Decision{}, nil
	}
	var d command.CloseSession
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	return decision.Of(h.ending(orElse(d.Reason, "user_request"))...), nil
}

// ending cancels every open run, then closes the session or the agent.
func (h lifecycle) ending(reason string) []decision.Fact {
	var list []decision.Fact
	for _, r := range h.s.queue.open() {
		list = append(list, h.stop(r, reason)...)
	}
	if h.s.Agent != nil {
		return append(list, decision.Fact{ID: h.c.ID + ".closed", Data: event.MemberClosedData{Reason: reason}})
	}
	stats := h.s.Stats(h.now)
	return append(list, decision.Fact{ID: h.c.ID + ".closed", Data: event.SessionClosedData{Reason: reason, Stats: &stats}})
}

// delete stops every open run and deletes the session.
func (h lifecycle) delete() (decision.Decision, error) {
	if h.s.Seq == 0 {
		return decision.Decision{}, nil
	}
	var list []decision.Fact
	for _, r := range h.s.queue.open() {
		list = append(list, h.stop(r, deletion)...)
	}
	return decision.Of(append(list, decision.Fact{ID: h.c.ID + ".deleted", Data: event.SessionDeletedData{Reason: "user_request"}})...), nil
}

// expire closes a session without an active run in which nothing has happened for the TTL.
func (h lifecycle) expire() (decision.Decision, error) {
	if h.s.Created.IsZero() || h.s.Closed || h.s.Active() != nil || h.now.Before(h.s.Updated.Add(h.rules.TTL)) {
		return decision.Decision{}, nil
	}
	return decision.Of(h.ending("timeout")...), nil
}

func (h lifecycle) cancel() (decision.Decision, error) {
	var d command.CancelRun
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	if d.All && d.RunID == "" {
		if list := h.stopAll(orElse(d.Reason, "user_request")); len(list) > 0 {
			return decision.Of(list...), nil
		}
		return h.sumUp(d)
	}
	r := h.s.Active()
	if d.RunID != "" {
		r = h.s.Run(d.RunID)
	}
	if r != nil && !r.Status.Terminal() && !h.cancelled() {
		return decision.Of(h.stop(r, orElse(d.Reason, "user_request"))...), nil
	}
	return h.sumUp(d)
}

// stopAll cancels the active run and the waiting ones, the newest first, so that a repeat of the
// command finds where it stopped. It leaves runs that were accepted later.
func (h lifecycle) stopAll(reason string) []decision.Fact {
	before := len(h.s.queue.order)
	if h.s.known.has(h.c.ID + ".cancelled") {
		before = 0 // unless one of its runs is left
	}
	for i, r := range h.s.queue.order {
		if h.s.known.has(h.c.ID + ".cancelled." + r.ID) {
			before = i
			break
		}
	}
	var list []decision.Fact
	for i := before - 1; i >= 0; i-- {
		if r := h.s.queue.order[i]; !r.Status.Terminal() {
			list = append(list, h.stop(r, reason)...)
		}
	}
	return list
}

// sumUp appends the totals of a paused session. Then the session continues.
func (h lifecycle) sumUp(d command.CancelRun) (decision.Decision, error) {
	if paused := h.c.ID + ".paused"; d.Pause && h.s.Agent == nil && !h.s.Created.IsZero() && !h.s.Closed && !h.s.known.has(paused) {
		return decision.Of(decision.Fact{ID: paused, Data: event.SessionPausedData{Reason: "user_request", Stats: h.s.Stats(h.now)}}), nil
	}
	return h.goOn()
}

// cancelled reports whether the command has had its effect: it stops one run, not
// the one after it as well.
func (h lifecycle) cancelled() bool {
	return h.s.known.has(h.c.ID+".cancelled") || h.s.known.has(h.c.ID+".paused")
}

// deletion is why the runs of a deleted session end.
const deletion = "session_deleted"
