// Package fold translates between Waggle and AG-UI, the protocol of agent front ends.
//
// A frame of AG-UI depends on more than one event: a run of the protocol may end only when nothing of it is open. A Thread
// is therefore a fold of the log: the same prefix of a log gives the same Thread and the same frames at every gateway.
//
// A run of Waggle is one run of AG-UI for each stretch between two questions: a stretch ends with its questions as
// interrupts, and the answer begins the next one.
package fold

import (
	"maps"
	"slices"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Variant is a form of the protocol. Variants are immutable values.
type Variant struct {
	name      string
	subagents bool // SUBAGENT_* and subagentRunId
	cancelled bool // the outcome cancelled
	files     bool // parts with handles of files
	pending   bool // the calls that wait for the client in an outcome
}

// The variants. Clients before 1.0 refuse the outcome cancelled, and those before 0.0.58 subagents.
var (
	V1          = Variant{"agui", true, true, true, true}
	V0          = Variant{"agui-0", false, false, false, false}
	V0Subagents = Variant{"agui-0+subagents", true, false, false, false}
)

// Name is short, constant and unique among all variants: it labels metrics and keys of frames.
func (v Variant) Name() string { return v.name }

// Frame is one event of AG-UI.
type Frame struct {
	Data    []byte // JSON on one line
	Stretch string // id of the AG-UI run that it belongs to
	Shown   Shown
	Ends    bool // it is the last of its stretch
	Own     bool // it names the thread as the viewer does: others have it differently
}

// Shown says which streams have a frame.
type Shown uint8

// A run that waits for its turn begins at once in a stream of its own, and in its turn in a stream of the thread.
const (
	Everywhere Shown = iota
	OwnStream
	ThreadStream
)

// Thread is the projection of one log. It is not safe for concurrent use.
type Thread struct {
	variant Variant
	id      string // as its boundaries name it
	alias   string // of the newest stretch in boundaries; empty = its own id
	name    string // the id that its first client gave it
	seq     uint64 // of the last event
	closed  uint64 // of the end of the session; 0 = it lives
	run     *run   // the newest; nil before the first
	waiting map[string]event.MessageReceivedData
	past    *past // nil in a clone
	history history
	team    *team // nil: the log is that of a session

	at      event.Event // that is being folded
	attempt int         // of the worker that it is of; 0 = of none
	of      string      // the member's run that it is of; empty = of none
	first   uint64      // of the events that were folded
	out     output
}

// New returns the projection of an empty log of a session.
func New(v Variant) *Thread {
	return &Thread{variant: v, waiting: map[string]event.MessageReceivedData{}, past: newPast()}
}

// Of is New for the log of a session or a team, by its kind.
func Of(kind id.Kind, v Variant) *Thread {
	t := New(v)
	if kind == id.KindTeam {
		t.team = newTeam()
	}
	return t
}

// Until is Of for a projection that keeps the newest messages up to the one with the id, however many follow.
func Until(kind id.Kind, v Variant, messageID string) *Thread {
	t := Of(kind, v)
	t.history.until = messageID
	return t
}

// Clone returns a copy for a viewer, whose boundaries name the thread id. It has no Past.
func (t *Thread) Clone(id string) *Thread {
	c := *t
	c.id, c.past, c.out = id, nil, output{}
	c.run, c.history, c.waiting = t.run.clone(), t.history.clone(), maps.Clone(t.waiting)
	c.team = t.team.clone()
	return &c
}

// Fork returns a copy from which others begin. It has no Past.
func (t *Thread) Fork() *Thread { return t.Clone("") }

// Call names the newest stretch in its boundaries as a client calls it.
func (t *Thread) Call(runID string) { t.alias = runID }

// Adopt replaces messages by those of the other projection that are equal, so that both keep them once.
func (t *Thread) Adopt(o *Thread) { t.history.adopt(o.history) }

// Size returns about how many bytes the projection takes.
func (t *Thread) Size() int {
	const base, entry = 4 << 10, 128
	n := base + t.history.bytes + entry*len(t.history.list)
	if t.run != nil {
		for _, x := range t.run.texts {
			n += len(x.body)
		}
	}
	if t.past != nil {
		n += entry * (len(t.past.messages) + len(t.past.stretches) + len(t.past.refused))
	}
	return n
}

// Beginning returns the sequence of the first event that was folded: threads with the same one have the same frames of an event,
// but for their boundaries.
func (t *Thread) Beginning() uint64 { return t.first }

// Seq returns the sequence of the last event that was folded.
func (t *Thread) Seq() uint64 { return t.seq }

// Name returns the id that the client which made the thread gave it, empty for a thread of another protocol.
func (t *Thread) Name() string { return t.name }

// Open returns the stretch that is open, empty if none is.
func (t *Thread) Open() string {
	if t.run == nil {
		return ""
	}
	return t.run.stretch
}

// Closed returns the sequence of the event with which the session has ended, 0 while it lives.
func (t *Thread) Closed() uint64 { return t.closed }

// Newest returns the newest stretch, empty before the first.
func (t *Thread) Newest() string {
	if t.run == nil {
		return ""
	}
	return t.run.last
}

// Run returns Waggle's id of the newest run, and whether it is active.
func (t *Thread) Run() (id string, active bool) {
	if t.run == nil {
		return "", false
	}
	return t.run.id, !t.run.over
}

// Waits reports whether a message with the id of a run has not begun its run yet.
func (t *Thread) Waits(runID string) bool {
	for _, m := range t.waiting {
		if m.MessageID == runID {
			return true
		}
	}
	return false
}

// Questions returns the open questions, the oldest first, and whether the run waits for nothing else.
func (t *Thread) Questions() (open []wire.Interrupt, only bool) {
	if t.run == nil || t.run.over {
		return nil, false
	}
	return t.run.interrupts(), t.run.stretch == ""
}

// Question returns a question of the newest run, open or not.
func (t *Thread) Question(id string) (q Question, known bool) {
	if t.run == nil {
		return q, false
	}
	i := slices.IndexFunc(t.run.questions, func(q Question) bool { return q.ID == id })
	if i < 0 {
		return q, false
	}
	return t.run.questions[i], true
}

// Past are the stretches and messages of a log, by their ids.
type past struct {
	stretches map[string]Stretch
	messages  map[string]bool
	asked     bool // it has a message of a user
	refused   map[string]event.MessageRefusedData
	order     []string // of refused, the oldest first
}

func newPast() *past {
	return &past{stretches: map[string]Stretch{}, messages: map[string]bool{}, refused: map[string]event.MessageRefusedData{}}
}

// maxRefused bounds the refused messages that a thread remembers: a client repeats the newest.
const maxRefused = 256

func (p *past) refuse(d event.MessageRefusedData) {
	if _, known := p.refused[d.MessageID]; !known {
		p.order = append(p.order, d.MessageID)
	}
	p.refused[d.MessageID] = d
	for len(p.order) > maxRefused {
		delete(p.refused, p.order[0])
		p.order = p.order[1:]
	}
}

// refusal returns why the message with the id of a command was refused, nil if it was not. A clone knows none.
func (t *Thread) refusal(commandID string) error {
	if t.past == nil {
		return nil
	}
	d, refused := t.past.refused[commandID]
	if !refused {
		return nil
	}
	return fault.Newf(fault.Code(d.Code), "%s", d.Message)
}

// fresh reports whether the thread has no message of a user.
func (t *Thread) fresh() bool { return t.past != nil && !t.past.asked }

// Stretch is one run of AG-UI: a part of a log.
type Stretch struct {
	Run          string // Waggle's
	Begun, Ended uint64 // sequences of the events with its first and its last frame; Ended is 0 while it is open
	Joins        string // the stretch that is shown in its place: a message has come to a team at work
}

// Stretch returns a stretch of the thread. A clone knows none.
func (t *Thread) Stretch(id string) (s Stretch, known bool) {
	if t.past != nil {
		s, known = t.past.stretches[id]
	}
	return s, known
}

// Knows reports whether the thread has a message with the id. A clone knows none.
func (t *Thread) Knows(messageID string) bool { return t.past != nil && t.past.messages[messageID] }
