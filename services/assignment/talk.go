package assignment

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// maxMail is how many messages are kept for an agent that gets the task later: more
// than a person types while a task waits. The newest count.
const maxMail = 32

// talk is what client and agent say to each other.
type talk struct {
	mail     []event.TaskMessagedData // messages of the client to the agent of the task
	question *question                // the newest
	closings map[uint64]uint64        // by the sequence of a question: the event with its answer, or that it got none
}

// question is a question of the agent to the client.
type question struct {
	id       string // for the client and the agent
	eventID  string
	seq      uint64
	due      time.Time
	over     bool // answered, expired, or its agent has lost the task
	answered *event.TaskMessagedData
}

// meant reports whether the message may be about the newest question: it names that one, or none.
func (q *question) meant(d command.TaskMessage) bool {
	if q == nil {
		return d.InputID == "" && d.Asked == 0
	}
	return (d.InputID == "" || q.id == d.InputID) && (d.Asked == 0 || q.seq == d.Asked)
}

func (t *talk) foldMessaged(e event.Event, d event.TaskMessagedData) {
	if q := t.question; d.InputID != "" && q != nil && q.id == d.InputID && !q.over {
		q.over, q.answered = true, &d
		t.closings[q.seq] = e.Sequence
		return
	}
	t.mail = append(t.mail, d)
	if len(t.mail) > maxMail {
		t.mail = t.mail[1:]
	}
}

func (t *talk) foldAskExpired(e event.Event, d event.TaskAskExpiredData) {
	if t.question != nil && t.question.id == d.InputID {
		t.question.over = true
		t.closings[t.question.seq] = e.Sequence
	}
}
