// Package fold makes chats of the AI SDK out of logs of sessions: the chunks of the UI message stream protocol, and the messages that
// a page's useChat keeps.
//
// A run is one message of the assistant, whose id is that of the run. A Chat is a fold of the log: the same prefix gives the same
// messages and chunks at every gateway. The fold applies each chunk to the message as a client does, so that the message is always what
// its chunks make.
//
// A response of the protocol ends where people have to answer, and the answer begins the next one, which continues the message. So a
// run has a stretch before the first question, and one after each answer.
package fold

import (
	"maps"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Options are the form of the protocol that a client takes.
type Options struct {
	Seven bool // it knows the chunks of ai 7
}

// Frame is one chunk of a stream.
type Frame struct {
	Data    []byte // JSON on one line
	Run     string // of Waggle
	Stretch int    // of the run: 1, 2, ...
	Ends    bool   // it is the last of the stretch
}

// Bounds of the messages that a chat keeps: the newest.
const (
	maxMessages = 1000
	maxBytes    = 2 << 20
	maxRefused  = 256
)

// Chat is the fold of one log. It is not safe for concurrent use.
type Chat struct {
	options  Options
	seq      uint64 // of the last event
	first    uint64 // of the events that were folded
	closed   bool
	run      *run // the newest; nil before the first
	waiting  map[string]event.MessageReceivedData
	messages []*Message // those before the newest run are not modified
	past     *past      // nil in a copy

	at     event.Event // that is being folded
	mute   bool
	frames []Frame
}

// past is what a chat knows of all its messages.
type past struct {
	asked   bool              // a user has said something
	texts   map[string]uint64 // digests of the texts of users, by the ids of messages
	runs    map[string]string // by the ids of messages
	refused map[string]event.MessageRefusedData
	order   []string // of refused, the oldest first
}

// New returns the chat of an empty log.
func New(o Options) *Chat {
	return &Chat{
		options: o, waiting: map[string]event.MessageReceivedData{},
		past: &past{texts: map[string]uint64{}, runs: map[string]string{}, refused: map[string]event.MessageRefusedData{}},
	}
}

// Fork returns a copy that continues by itself. It does not know what Means needs.
func (t *Chat) Fork() *Chat {
	c := *t
	c.past, c.frames = nil, nil
	c.waiting, c.messages = maps.Clone(t.waiting), slices.Clone(t.messages)
	if c.run = t.run.clone(); c.run != nil {
		for i, m := range c.messages {
			if m == t.run.message {
				c.messages[i] = c.run.message
			}
		}
	}
	return &c
}

// Size returns about how many bytes the chat takes.
func (t *Chat) Size() int {
	const base, entry = 4 << 10, 256
	n := base + entry*len(t.messages)
	for _, m := range t.messages {
		n += m.size
	}
	if t.past != nil {
		n += entry * (len(t.past.runs) + len(t.past.refused))
	}
	return n
}

// Beginning returns the sequence of the first event that was folded: chats with the same one have the same frames of an event.
func (t *Chat) Beginning() uint64 { return t.first }

// Seq returns the sequence of the last event that was folded.
func (t *Chat) Seq() uint64 { return t.seq }

// Closed reports whether the session has ended.
func (t *Chat) Closed() bool { return t.closed }

// Take takes the next event of the log.
func (t *Chat) Take(e event.Event) {
	t.mute = true
	t.next(e)
	t.mute = false
}

// Next takes the next event of the log and returns its frames.
func (t *Chat) Next(e event.Event) []Frame {
	t.next(e)
	out := t.frames
	t.frames = nil
	return out
}

// next folds the event. One whose data cannot be read changes nothing.
func (t *Chat) next(e event.Event) {
	t.at, t.seq = e, e.Sequence
	if t.first == 0 {
		t.first = e.Sequence
	}
	if handle := handlers[e.Type]; handle != nil {
		handle(t, e)
	}
	t.rest()
}

// Run returns the newest run, empty before the first, and whether it is active.
func (t *Chat) Run() (id string, active bool) {
	if t.run == nil {
		return "", false
	}
	return t.run.id, !t.run.over
}

// Resting reports whether the newest run waits for nothing but answers.
func (t *Chat) Resting() bool { return t.run != nil && !t.run.over && !t.run.open }

// Stretch returns the number of the newest stretch of the newest run.
func (t *Chat) Stretch() int {
	if t.run == nil {
		return 0
	}
	return t.run.stretch
}

// Rested returns the sequence of the event with which a stretch of the newest run has ended, 0 while it is open.
func (t *Chat) Rested(stretch int) uint64 {
	if t.run == nil || stretch < 1 || stretch > len(t.run.rests) {
		return 0
	}
	return t.run.rests[stretch-1]
}

// Answering returns the run that answers the message with the id of a command, empty for an unknown one, and how it waits for
// its turn, nil if it does not. A copy knows only those that wait.
func (t *Chat) Answering(commandID string) (runID string, waits *Queued) {
	for _, m := range t.waiting {
		if m.MessageID == commandID {
			return m.RunID, &Queued{RunID: m.RunID, Ahead: m.Queued}
		}
	}
	if t.past != nil {
		runID = t.past.runs[commandID]
	}
	return runID, nil
}

// Messages returns the newest messages, at most limit, and whether older ones exist.
func (t *Chat) Messages(limit int) (out []Message, more bool) {
	all := make([]Message, 0, len(t.messages))
	for _, m := range t.messages {
		if one := m.shown(); len(one.Parts) > 0 || one.Metadata != nil && one.Metadata.Error != nil {
			all = append(all, one)
		}
	}
	from := max(len(all)-limit, 0)
	return all[from:], from > 0 || t.first > 1
}

// Prelude returns the frames that make the message of the newest run as it stands.
func (t *Chat) Prelude() []Frame {
	r := t.run
	if r == nil {
		return nil
	}
	return t.encoded(append(r.message.replay(), r.end...)...)
}

// Replay returns the frames that make the message of an earlier run, none for one that the chat does not keep.
func (t *Chat) Replay(runID string) []Frame {
	if t.run != nil && t.run.id == runID {
		return t.Prelude()
	}
	for _, m := range t.messages {
		if m.ID != runID || m.Role != RoleAssistant {
			continue
		}
		return t.encoded(append(m.replay(), ended(m.Metadata)...)...)
	}
	return nil
}

// Nothing returns the frames of a stretch in which nothing happens: the run still waits for answers, or has ended.
func (t *Chat) Nothing() []Frame {
	start := Chunk{Type: Start}
	end := []Chunk{{Type: Finish, FinishReason: FinishStop}}
	if t.run != nil {
		start.MessageID = t.run.message.ID
		if len(t.run.end) > 0 {
			end = t.run.end
		}
	}
	return t.encoded(append([]Chunk{start}, end...)...)
}

// Again returns the frames with which a client continues the message of the newest run, whose texts are still open: they begin anew.
func (t *Chat) Again() []Frame {
	chunks := []Chunk{{Type: Start, MessageID: t.run.message.ID}}
	for i := range t.run.message.Parts {
		if p := &t.run.message.Parts[i]; p.State == stateStreaming {
			chunks = append(chunks, p.replay()...)
		}
	}
	return t.encoded(chunks...)
}

// encoded returns chunks as frames of the newest stretch.
func (t *Chat) encoded(chunks ...Chunk) (out []Frame) {
	for _, c := range chunks {
		if data, err := plainjson.Marshal(c); err == nil { // chunks have no values that JSON lacks
			out = append(out, Frame{Data: data})
		}
	}
	if t.run != nil {
		for i := range out {
			out[i].Run, out[i].Stretch = t.run.id, t.run.stretch
		}
	}
	return out
}

// emit shows a chunk of the newest run.
func (t *Chat) emit(c Chunk) {
	t.run.message.apply(c)
	if !t.mute {
		t.frames = append(t.frames, t.encoded(c)...)
	}
}

// add adds a message, and forgets the oldest beyond the bounds.
func (t *Chat) add(m *Message) {
	t.messages = append(t.messages, m)
	total := 0
	for i := len(t.messages) - 1; i >= 0; i-- {
		if total += t.messages[i].size; total > maxBytes && i < len(t.messages)-1 || len(t.messages)-i > maxMessages {
			t.messages = slices.Clone(t.messages[i+1:])
			return
		}
	}
}

// time is when the event that is being folded happened.
func (t *Chat) time() string {
	if t.at.Time.IsZero() {
		return ""
	}
	return t.at.Time.UTC().Format(time.RFC3339Nano)
}

// with decodes the event's data for f.
func with[T event.Data](f func(*Chat, T)) func(*Chat, event.Event) {
	return func(t *Chat, e event.Event) {
		if d, err := eventdata.As[T](e); err == nil {
			f(t, d)
		}
	}
}

// inRun is with for events of the active run. Others, and late ones, have no chunks.
func inRun[T event.Data](f func(*Chat, T)) func(*Chat, event.Event) {
	return func(t *Chat, e event.Event) {
		if t.run == nil || t.run.over {
			return
		}
		var of struct {
			RunID string `json:"run_id"`
		}
		if eventdata.Decode(e.Data, &of) != nil || of.RunID != "" && of.RunID != t.run.id {
			return
		}
		if d, err := eventdata.As[T](e); err == nil {
			f(t, d)
		}
	}
}
