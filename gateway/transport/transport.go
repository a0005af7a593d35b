// Package transport defines the way from a gateway to one client: messages that many
// clients share, and the transports that carry them. A transport knows no log and no
// dialect. Package transporttest is the suite that every transport passes.
package transport

import (
	"strconv"
	"strings"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Transport carries messages to one client, in order. Its queue has a bound in bytes. All
// methods may be called concurrently at any time, and none waits for the client.
type Transport interface {
	// Send queues messages and returns how many it accepted. Fewer than all means that the
	// queue is full, and that the owner of the transport is told when it has room again,
	// or that the transport is ending. An empty queue accepts a message of any size.
	Send(ms ...*Message) (accepted int)
	// Force queues a message that has to get through, such as an error: it may exceed the
	// bound by 64 KiB in all. It returns false where even that room is full or the
	// transport is ending.
	Force(m *Message) bool
	// End ends the transport behind all that is queued, and says the fault in its own way.
	// The first call wins; from then on Send and Force accept nothing.
	End(f *fault.Fault)
	// Done is closed when the transport is over.
	Done() <-chan struct{}
}

// Position is a place in a log from which a viewer resumes: after the event with Seq, or
// behind the first Part messages of it. Part is 0 for the last message of an event.
type Position struct {
	Seq  uint64
	Part int
}

// ParsePosition reads what String returns.
func ParsePosition(text string) (at Position, ok bool) {
	whole, part, parted := strings.Cut(text, ".")
	seq, err := strconv.ParseUint(whole, 10, 64)
	at.Seq = seq
	if err == nil && parted {
		at.Part, err = strconv.Atoi(part)
	}
	return at, err == nil && at.String() == text
}

// String returns seq or seq.part, and nothing for no position.
func (p Position) String() string {
	switch {
	case p.Seq == 0:
		return ""
	case p.Part == 0:
		return strconv.FormatUint(p.Seq, 10)
	default:
		return strconv.FormatUint(p.Seq, 10) + "." + strconv.Itoa(p.Part)
	}
}

// headroom is the room before Message.Data: the longest header of a frame fits.
const headroom = 10

// Message is one message to clients. It is immutable, and shared by all viewers of a log
// in one variant.
type Message struct {
	Data     []byte   // one text; valid UTF-8
	Event    string   // name of the event, for transports that have a place for it
	Position Position // where a viewer that has the message resumes; zero for messages of no log
	ID       string   // instead of Position, where a viewer resumes in several logs
	Final    bool     // ends the response of a stream of one run

	buf   []byte // headroom and Data
	forms [wires]form
}

// Wire names the wire form of a transport.
type Wire uint8

// The wire forms.
const (
	WebSocket Wire = iota
	EventStream
	wires
)

// form is a wire form of a message, rendered once.
type form struct {
	once sync.Once
	p    []byte
}

// Text returns a message without event and position. The data is copied.
func Text(data []byte) *Message { return New(data, "", Position{}) }

// New returns a message. The data is copied.
func New(data []byte, event string, at Position) *Message {
	buf := make([]byte, headroom+len(data))
	copy(buf[headroom:], data)
	return &Message{Data: buf[headroom:], Event: event, Position: at, buf: buf}
}

// Render returns a wire form of the message. render runs once per message and form, on
// the first call; others wait for it.
func (m *Message) Render(w Wire, render func(*Message) []byte) []byte {
	f := &m.forms[w]
	f.once.Do(func() { f.p = render(m) })
	return f.p
}

// Prefix returns the data after a header, without a copy where the message has room for
// it. Only one wire form may be made of it, by Render.
func (m *Message) Prefix(header []byte) []byte {
	if len(header) > headroom || m.buf == nil {
		return append(append(make([]byte, 0, len(header)+len(m.Data)), header...), m.Data...)
	}
	at := headroom - len(header)
	copy(m.buf[at:headroom], header)
	return m.buf[at:]
}
