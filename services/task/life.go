package task

import (
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/assignment"
)

// life is the state of a task with the events that agent and client have not been told yet.
type life struct {
	assignment.State
	inbox  []event.Event // for the client: not known to be in its log
	outbox []news        // for agents: not known to be told
	told   uint64        // sequence up to which the agent that has the task was told
	asked  bool          // told was looked up
	asks   []ask         // the newest questions that the log of the task's job has, too
}

// ask is a question of the agent with what became of it.
type ask struct {
	asked, closed event.Event // closed is zero while it is open
}

// news are messages to an agent, in order.
type news struct {
	to    string
	event event.Event
}

// lasting are the events that the holder of the task has to get, also if it is away for long. It
// gets other events only while it is connected.
var lasting = map[event.Type]bool{
	event.TaskMessaged: true, event.TaskAskExpired: true, event.ChildCreated: true, event.ChildFinished: true, event.CallFinished: true,
}

// apply folds an event and keeps it until client and agent have been told.
func (l *life) apply(e event.Event) error {
	holder := l.Holder()
	if err := l.Apply(e); err != nil {
		return err
	}
	if l.Task().ClientID != "" {
		l.inbox = append(l.inbox, e)
	}
	if l.Task().IsJob() {
		l.note(e)
	}
	switch {
	case e.Type == event.TaskAssigned:
		l.keep(func(n news) bool { return n.event.Type == event.TaskReleased && n.to != l.Holder() })
	case e.Type == event.TaskReleased && holder != l.Holder():
		l.outbox = append(l.keep(func(n news) bool { return n.event.Type == event.TaskReleased }), news{holder, e})
	case e.Type == event.TaskFinished:
		l.keep(func(n news) bool { return n.event.Type == event.TaskReleased })
		if holder != "" {
			l.outbox = append(l.outbox, news{holder, e})
		}
	case holder != "" && (lasting[e.Type] || e.Type == event.CallNotified):
		l.outbox = append(l.outbox, news{holder, e})
	}
	return nil
}

// keptAsks is how many questions are kept: no command brings more than the end of one and another one.
const keptAsks = 2

// note keeps the newest questions.
func (l *life) note(e event.Event) {
	switch e.Type {
	case event.TaskAsked:
		l.asks = append(l.asks[max(0, len(l.asks)-keptAsks+1):len(l.asks):len(l.asks)], ask{asked: e})
	case event.TaskMessaged, event.TaskAskExpired, event.TaskReleased, event.TaskFinished:
		if n := len(l.asks); n > 0 && l.asks[n-1].closed.Type == "" && l.Question() == "" {
			l.asks[n-1].closed = e
		}
	}
}

// keep drops the news that do not pass.
func (l *life) keep(pass func(news) bool) []news {
	var out []news
	for _, n := range l.outbox {
		if pass(n) {
			out = append(out, n)
		}
	}
	l.outbox = out
	return out
}

// withoutMail drops the news that were told as mail.
func (l *life) withoutMail() {
	told := map[string]bool{}
	for _, m := range l.Mail() {
		told[m.MessageID] = true
	}
	l.keep(func(n news) bool {
		m, err := event.As[event.TaskMessagedData](n.event)
		return n.event.Type != event.TaskMessaged || err != nil || !told[m.MessageID]
	})
}

// owed reports whether the agent that has the task has to be told something.
func (l *life) owed() bool {
	for _, n := range l.outbox {
		if lasting[n.event.Type] {
			return true
		}
	}
	return l.Undelivered() != nil
}

// mayReport reports whether a service may send the command in its own name.
func mayReport(st *life, c cmd.Command) bool { return st.MayReport(c) }
