package asp_test

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

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// shownOrder is an order as transcripts show it.
type shownOrder struct {
	RequestID string                   `json:"request_id,omitempty"`
	Type      string                   `json:"type"`
	Intent    *dialecttest.ShownIntent `json:"intent,omitempty"`
	Task      string                   `json:"task,omitempty"`
	Ask       *shownAsk                `json:"ask,omitempty"`
	Register  *command.Participant     `json:"register,omitempty"`
	Forward   *shownForward            `json:"forward,omitempty"`
	Say       int                      `json:"say,omitempty"` // how many frames; they are among the replies
	Leave     bool                     `json:"leave,omitempty"`
	Quiet     bool                     `json:"quiet,omitempty"`
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

func showOrder(t *testing.T, o asp.Order) []byte {
	s := shownOrder{RequestID: o.RequestID, Type: o.Type, Task: o.Task, Register: o.Register, Say: len(o.Frames), Leave: o.Leave, Quiet: o.Unanswered}
	if o.Intent != nil {
		i := dialecttest.ShowIntent(*o.Intent)
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

// transcript is one golden file, played.
type transcript struct {
	*role
	in                      asp.Inbound
	asked                   []asp.Order
	orders, replies, frames [][]byte
	events                  []event.Event
	perEvent                [][][]byte
}

// transcripts runs every golden file, then checks that together they show every
// message type of the role.
func (c *role) transcripts(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", c.Kind(), "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "no transcripts of %s", c.Kind())
	said, heard := map[string]bool{}, map[string]bool{}
	for _, p := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(p), ".txtar"), func(t *testing.T) { c.transcript(t, p, said, heard) })
	}
	for _, kind := range c.In {
		require.True(t, heard[kind], "no transcript shows a %s from the participant", kind)
	}
	for alias := range c.Aliases {
		require.True(t, heard[alias], "no transcript shows a %s from the participant", alias)
	}
	for _, kind := range c.Out {
		require.True(t, said[kind], "no transcript shows a %s to the participant", kind)
	}
}

func (c *role) transcript(t *testing.T, path string, said, heard map[string]bool) {
	a, err := txtar.ParseFile(path)
	require.NoError(t, err)
	require.NotEmpty(t, bytes.TrimSpace(a.Comment), "a transcript says what it shows")
	tr := &transcript{role: c, in: c.socket()}
	if raw := dialecttest.Section(a, "peer"); raw != nil {
		tr.in.Participant = command.Participant{}
		require.NoError(t, json.Unmarshal(raw, &tr.in.Participant))
	}
	if raw := dialecttest.Section(a, "watched"); raw != nil {
		tr.in.Watched, err = subject.ParseName(strings.TrimSpace(string(raw)))
		require.NoError(t, err)
	}
	tr.in.OnlyTask = strings.TrimSpace(string(dialecttest.Section(a, "task")))
	if tr.in.LastTask = tr.in.OnlyTask; dialecttest.Section(a, "last") != nil {
		tr.in.LastTask = strings.TrimSpace(string(dialecttest.Section(a, "last")))
	}
	for _, f := range dialecttest.Lines(dialecttest.Section(a, "client")) {
		heard[kindOf(f)] = true
		tr.hear(t, f)
	}
	for _, line := range dialecttest.Lines(dialecttest.Section(a, "bus")) {
		tr.play(t, line)
	}
	for _, f := range slices.Concat(tr.replies, tr.frames) {
		c.frame(t, f)
		said[kindOf(f)] = true
	}
	dialecttest.Stateless(t, c.Encode, tr.events, tr.perEvent)
	for i, e := range tr.events {
		lastHasSeq(t, e, c.said.Frames(t, tr.perEvent[i]))
	}
	dialecttest.Compare(t, a, path,
		dialecttest.Result{Section: "orders", Rows: tr.orders}, dialecttest.Result{Section: "replies", Rows: tr.replies},
		dialecttest.Result{Section: "frames", Rows: tr.frames})
}

// hear gives the codec a frame of the participant.
func (tr *transcript) hear(t *testing.T, f []byte) {
	orders, requestID, err := tr.Orders(f, tr.in)
	if d, ok := errors.AsType[asp.Dropped](err); ok {
		require.Empty(t, orders)
		tr.orders = append(tr.orders, []byte(map[bool]string{false: "dropped ", true: "ends "}[d.Ends]+d.Error()))
		return
	}
	if flt, ok := errors.AsType[*fault.Fault](err); ok {
		require.Empty(t, orders)
		tr.orders = append(tr.orders, []byte("fault "+flt.Error()))
		tr.replies = append(tr.replies, tr.Refuse(dialecttest.Link, asp.Order{RequestID: requestID}, flt))
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
func (tr *transcript) play(t *testing.T, line []byte) {
	if line[0] == '!' {
		tr.frames = append(tr.frames, tr.linked(t, string(line[1:]))...)
		return
	}
	var e event.Event
	require.NoError(t, json.Unmarshal(line, &e), "%s", line)
	if e.Sequence > 0 {
		require.False(t, tr.noLog, "a participant without a log gets direct messages: %s", line)
		dialecttest.Event(t, line)
	}
	got := tr.Encode(e)
	tr.frames = append(tr.frames, got...)
	tr.frames = append(tr.frames, tr.Repeat(e)...)
	tr.events, tr.perEvent = append(tr.events, e), append(tr.perEvent, got)
}

// linked returns what a gateway says of itself.
func (tr *transcript) linked(t *testing.T, what string) [][]byte {
	word, arg, _ := strings.Cut(what, " ")
	switch word {
	case "welcome":
		var opened *command.OpenClientReply
		if arg != "" {
			require.NoError(t, json.Unmarshal([]byte(arg), &opened))
		}
		return [][]byte{tr.Welcome(dialecttest.Link, opened)}
	case "ping":
		return [][]byte{tr.Ping(dialecttest.Link)}
	case "refuse":
		o, code := asp.Order{RequestID: "req-1"}, arg
		if number, rest, numbered := strings.Cut(arg, " "); numbered {
			o, code = tr.order(t, number), rest
		}
		return [][]byte{tr.Refuse(dialecttest.Link, o, fault.New(fault.Code(code)))}
	}
	require.Equal(t, "answer", word, "unknown line in the bus section: !%s", what)
	number, reply, _ := strings.Cut(arg, " ")
	return tr.Answer(dialecttest.Link, tr.order(t, number), json.RawMessage(reply))
}

// order returns an order that was asked, by its number.
func (tr *transcript) order(t *testing.T, number string) asp.Order {
	n, err := strconv.Atoi(number)
	require.NoError(t, err)
	require.True(t, n >= 1 && n <= len(tr.asked), "order %d does not exist", n)
	return tr.asked[n-1]
}

// examples checks the examples of the protocol's description: those of the participant are
// accepted and fit their schemas, and of those to it every member is in some frame of
// the transcripts, with the same kind of value.
func (c *role) examples(t *testing.T) {
	said := dialecttest.GoldenFrames(t, "testdata/"+c.Kind(), kindOf)
	for kind, raw := range c.described(t, "in") {
		c.orders(t, raw)
		c.in.Example(t, kind, raw, nil, nil)
	}
	for kind, raw := range c.described(t, "out") {
		c.said.Example(t, kind, raw, unsaid, said[kind])
	}
}

// exercise runs the whole suite against the codec of a role.
func exercise(t *testing.T, kind string, accepted []string) {
	t.Helper()
	c := load(t, kind, accepted)
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
	t.Run("pure", func(t *testing.T) { dialecttest.Pure(t, "github.com/waggle-dev/waggle/gateway/asp") })
}
