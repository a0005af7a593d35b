package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// shownOrder is an order as transcripts show it.
type shownOrder struct {
	RequestID string               `json:"request_id,omitempty"`
	Type      string               `json:"type"`
	Intent    *shownIntent         `json:"intent,omitempty"`
	Task      string               `json:"task,omitempty"`
	Ask       *shownAsk            `json:"ask,omitempty"`
	Register  *command.Participant `json:"register,omitempty"`
	Forward   *shownForward        `json:"forward,omitempty"`
	Say       int                  `json:"say,omitempty"` // how many frames; they are among the replies
	Leave     bool                 `json:"leave,omitempty"`
	Quiet     bool                 `json:"quiet,omitempty"`
}

type shownAsk struct {
	Topic string          `json:"topic"`
	Data  dialect.Inquiry `json:"data"`
}

type shownForward struct {
	CallID       string                  `json:"call_id"`
	Final        bool                    `json:"final"`
	Result       json.RawMessage         `json:"result,omitempty"`
	Failure      string                  `json:"failure,omitempty"`
	Details      json.RawMessage         `json:"details,omitempty"` // of the failure
	Notification *event.CallNotifiedData `json:"notification,omitempty"`
}

func showOrder(t *testing.T, o dialect.Order) []byte {
	s := shownOrder{RequestID: o.RequestID, Type: o.Type, Task: o.Task, Register: o.Register, Say: len(o.Frames), Leave: o.Leave, Quiet: o.Unanswered}
	if o.Intent != nil {
		i := showIntent(*o.Intent)
		s.Intent = &i
	}
	if o.Ask != nil {
		s.Ask = &shownAsk{Topic: dialect.Topic(o.Ask), Data: o.Ask}
	}
	if f := o.Forward; f != nil {
		s.Forward = &shownForward{CallID: f.CallID, Final: f.Final, Result: f.Result, Notification: f.Notification}
		if f.Failure != nil {
			s.Forward.Failure, s.Forward.Details = f.Failure.Error(), f.Failure.Details
		}
	}
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	return raw
}

// participantTranscript is one golden file, played.
type participantTranscript struct {
	*participants
	in                      dialect.ParticipantInbound
	asked                   []dialect.Order
	orders, replies, frames [][]byte
	events                  []event.Event
	perEvent                [][][]byte
}

// transcripts runs every golden file, then checks that together they show every
// message type of the role.
func (c *participants) transcripts(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(c.Transcripts, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "no transcripts in %s", c.Transcripts)
	said, heard := map[string]bool{}, map[string]bool{}
	for _, p := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(p), ".txtar"), func(t *testing.T) { c.transcript(t, p, said, heard) })
	}
	for _, kind := range c.Inbound {
		require.True(t, heard[kind], "no transcript shows a %s from the participant", kind)
	}
	for alias := range c.Aliases {
		require.True(t, heard[alias], "no transcript shows a %s from the participant", alias)
	}
	for _, kind := range c.Outbound {
		require.True(t, said[kind], "no transcript shows a %s to the participant", kind)
	}
}

func (c *participants) transcript(t *testing.T, path string, said, heard map[string]bool) {
	a, err := txtar.ParseFile(path)
	require.NoError(t, err)
	require.NotEmpty(t, bytes.TrimSpace(a.Comment), "a transcript says what it shows")
	tr := &participantTranscript{participants: c, in: c.socket()}
	if raw := section(a, "peer"); raw != nil {
		tr.in.Participant = command.Participant{}
		require.NoError(t, json.Unmarshal(raw, &tr.in.Participant))
	}
	if raw := section(a, "watched"); raw != nil {
		tr.in.Watched, err = subject.ParseName(strings.TrimSpace(string(raw)))
		require.NoError(t, err)
	}
	tr.in.OnlyTask = strings.TrimSpace(string(section(a, "task")))
	if tr.in.LastTask = tr.in.OnlyTask; section(a, "last") != nil {
		tr.in.LastTask = strings.TrimSpace(string(section(a, "last")))
	}
	for _, f := range lines(section(a, "client")) {
		heard[kindOf(f)] = true
		tr.hear(t, f)
	}
	for _, line := range lines(section(a, "bus")) {
		tr.play(t, line)
	}
	for _, f := range slices.Concat(tr.replies, tr.frames) {
		c.frame(t, f)
		said[kindOf(f)] = true
	}
	stateless(t, c.Codec.Encode, tr.events, tr.perEvent)
	for i, e := range tr.events {
		lastHasSeq(t, e, c.said.frames(t, tr.perEvent[i]))
	}
	compare(t, a, path, result{"orders", tr.orders}, result{"replies", tr.replies}, result{"frames", tr.frames})
}

// hear gives the codec a frame of the participant.
func (tr *participantTranscript) hear(t *testing.T, f []byte) {
	orders, requestID, err := tr.Codec.Orders(f, tr.in)
	if d, ok := errors.AsType[dialect.Dropped](err); ok {
		require.Empty(t, orders)
		tr.orders = append(tr.orders, []byte(map[bool]string{false: "dropped ", true: "ends "}[d.Ends]+d.Error()))
		return
	}
	if flt, ok := errors.AsType[*fault.Fault](err); ok {
		require.Empty(t, orders)
		tr.orders = append(tr.orders, []byte("fault "+flt.Error()))
		tr.replies = append(tr.replies, tr.Codec.Refuse(Link, dialect.Order{RequestID: requestID}, flt))
		return
	}
	require.NoError(t, err, "an error of Orders is a fault")
	if len(orders) == 0 {
		tr.orders = append(tr.orders, []byte("nothing"))
	}
	for _, o := range orders {
		tr.sane(t, o)
		tr.asked = append(tr.asked, o)
		tr.orders = append(tr.orders, showOrder(t, o))
		tr.replies = append(tr.replies, o.Frames...)
	}
}

// play is one line of the bus.
func (tr *participantTranscript) play(t *testing.T, line []byte) {
	if line[0] == '!' {
		tr.frames = append(tr.frames, tr.linked(t, string(line[1:]))...)
		return
	}
	var e event.Event
	require.NoError(t, json.Unmarshal(line, &e), "%s", line)
	if e.Sequence > 0 {
		require.False(t, tr.NoLog, "a participant without a log gets direct messages: %s", line)
		Event(t, line)
	}
	got := tr.Codec.Encode(e)
	tr.frames = append(tr.frames, got...)
	tr.frames = append(tr.frames, tr.Codec.Repeat(e)...)
	tr.events, tr.perEvent = append(tr.events, e), append(tr.perEvent, got)
}

// linked returns what a gateway says of itself.
func (tr *participantTranscript) linked(t *testing.T, what string) [][]byte {
	word, arg, _ := strings.Cut(what, " ")
	switch word {
	case "welcome":
		var opened *command.OpenClientReply
		if arg != "" {
			require.NoError(t, json.Unmarshal([]byte(arg), &opened))
		}
		return [][]byte{tr.Codec.Welcome(Link, opened)}
	case "ping":
		return [][]byte{tr.Codec.Ping(Link)}
	case "refuse":
		o, code := dialect.Order{RequestID: "req-1"}, arg
		if number, rest, numbered := strings.Cut(arg, " "); numbered {
			o, code = tr.order(t, number), rest
		}
		return [][]byte{tr.Codec.Refuse(Link, o, fault.New(fault.Code(code)))}
	}
	require.Equal(t, "answer", word, "unknown line in the bus section: !%s", what)
	number, reply, _ := strings.Cut(arg, " ")
	return tr.Codec.Answer(Link, tr.order(t, number), json.RawMessage(reply))
}

// order returns an order that was asked, by its number.
func (tr *participantTranscript) order(t *testing.T, number string) dialect.Order {
	n, err := strconv.Atoi(number)
	require.NoError(t, err)
	require.True(t, n >= 1 && n <= len(tr.asked), "order %d does not exist", n)
	return tr.asked[n-1]
}

// examples checks the examples of the protocol's description: those of the participant are
// accepted and fit their schemas, and of those to it every member is in some frame of
// the transcripts, with the same kind of value.
func (c *participants) examples(t *testing.T) {
	said := goldenFrames(t, c.Transcripts, kindOf)
	for kind, raw := range c.described(t, "in") {
		require.NotEmpty(t, kind)
		c.orders(t, raw)
		require.NoError(t, c.in.check(kind, raw))
		frames(t, c.Schema, raw)
	}
	shapes := &checker{Suite: Suite{Unsaid: c.Unsaid}}
	for kind, raw := range c.described(t, "out") {
		require.NoError(t, c.said.schemas.check(kind, raw))
		frames(t, c.Schema, raw)
		shapes.shape(t, kind, kind, parse(t, raw), said[kind])
	}
}

// ExerciseParticipants runs the whole suite against the codec.
func ExerciseParticipants(t *testing.T, s ParticipantSuite) {
	t.Helper()
	c := loadParticipants(t, s)
	t.Run("codec", c.codec)
	t.Run("transcripts", c.transcripts)
	t.Run("examples", c.examples)
	t.Run("hostile", c.hostile)
	t.Run("torn", c.torn)
	t.Run("faults", c.faults)
	t.Run("events", c.events)
	t.Run("damage", c.damage)
	t.Run("any event", c.anyEvent)
	t.Run("cuts", c.cuts)
	t.Run("pure", (&checker{Suite: Suite{Package: s.Package}}).pure)
}
