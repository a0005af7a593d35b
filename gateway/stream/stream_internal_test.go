package stream

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// owner is the binding and the socket's handler of a stream.
type owner struct{ s *Stream }

func (o *owner) Low()                               { o.s.Resume() }
func (*owner) Tick(time.Time)                       {}
func (*owner) Control() bool                        { return true }
func (*owner) Broken()                              {}
func (*owner) Ended(*fault.Fault)                   {}
func (*owner) Seen(*Stream)                         {}
func (*owner) Expired(*Stream, uint64)              {}
func (*owner) Failed(*Stream, error)                {}
func (*owner) Deleted(*Stream)                      {}
func (*owner) Notice(_ *Stream, _ event.NoticeData) {}

// fed returns a stream over a real socket. It writes the bytes of the other end
// to w.
func fed(t *testing.T, codec Codec, queue int, w io.Writer) (*Stream, *ws.Socket) {
	t.Helper()
	hub := ws.NewHub(ws.Options{QueueBytes: queue})
	t.Cleanup(hub.Close)
	accepted := make(chan error, 1)
	var sock *ws.Socket
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var err error
		sock, err = hub.Accept(rw, r, nil)
		accepted <- err
	}))
	t.Cleanup(srv.Close)
	nc, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	_, err = io.WriteString(nc, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	go func() { _, _ = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{nc}, make([]byte, 64<<10)) }()
	o := &owner{}
	o.s = New(&Source{Clock: time.Now, Lagged: func(Reason) {}}, Options{Life: t.Context(), Codec: codec, To: sock, Slot: NewSlot(), Binding: o})
	sock.Bind(o)
	return o.s, sock
}

func entries(t *testing.T, n int) []*eventlog.Entry {
	t.Helper()
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s")}
	out := make([]*eventlog.Entry, n)
	for i := range out {
		e, err := event.New(l, "e", "test", time.Unix(0, 0), event.RunCompletedData{Content: strings.Repeat("x", 150)})
		require.NoError(t, err)
		e.Sequence = uint64(i + 1)
		e.From = e.Sequence
		out[i] = &eventlog.Entry{Event: e}
	}
	return out
}

// several is a codec that gives some frames per event, or a panic.
type several int

func (several) Name() string                            { return "several" }
func (several) Fail(f *fault.Fault, _ time.Time) []byte { return []byte(f.Code) }

func (n several) Encode(e event.Event) [][]byte {
	if n < 0 {
		panic("a bug")
	}
	out := make([][]byte, n)
	for i := range out {
		out[i] = fmt.Appendf(nil, "<%d.%d>%s", e.Sequence, i, strings.Repeat(".", 1000))
	}
	return out
}

// left reports whether an entry is queued in part.
func left(f *Stream) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.rest.ms) > 0
}

// An entry of several frames is taken as a whole: what the queue has no room for is
// kept and comes next, and nothing comes twice.
func TestEntriesOfSeveralFrames(t *testing.T) {
	const each, n = 2, 400
	r, w := io.Pipe()
	t.Cleanup(func() { _ = r.Close() })
	f, _ := fed(t, several(each), 4000, w) // the queue has room for one entry and a part
	batch := entries(t, n)
	var want strings.Builder
	for i := range n {
		for k := range each {
			fmt.Fprintf(&want, "<%d.%d>", i+1, k)
		}
	}
	got := make(chan string, 1)
	go func() {
		var b strings.Builder
		in := bufio.NewReader(r)
		for b.Len() < want.Len() {
			if _, err := in.ReadString('<'); err != nil {
				break
			}
			s, _ := in.ReadString('>')
			b.WriteString("<" + s)
		}
		got <- b.String()
		_, _ = io.Copy(io.Discard, in)
	}()
	partial := false
	for at := 0; at < n; {
		at += f.Deliver(batch[at:min(at+7, n)])
		partial = partial || left(f)
		f.Resume()
		runtime.Gosched()
	}
	for f.Resume(); left(f); f.Resume() {
		runtime.Gosched()
	}
	require.Equal(t, want.String(), <-got)
	require.Equal(t, uint64(n), f.Position())
	require.True(t, partial, "no entry was ever taken in parts")
}

// A codec with a bug costs its event, not the gateway; an event that cannot be said
// costs nothing.
func TestCodecsThatSayNothing(t *testing.T) {
	f, _ := fed(t, several(-1), 1<<20, io.Discard)
	batch := entries(t, 2)
	require.Equal(t, 2, f.Deliver(batch))
	require.Equal(t, "INTERNAL", string(f.project(batch[0])[0].Data))
	f, _ = fed(t, several(0), 1<<20, io.Discard)
	require.Equal(t, 2, f.Deliver(entries(t, 2)))
	require.Equal(t, uint64(2), f.Position())
}

// bug says nothing.
func bug() []byte { panic("a bug") }

// A codec with a bug costs the frames that it cannot make. The replay continues, and
// so does the gateway.
func TestCodecsThatCannotReplay(t *testing.T) {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = r.Close() })
	f, _ := fed(t, several(1), 1<<20, w)
	f.replay = &replay{Replay: Replay{
		Head: 3, Batch: func([]event.Event) []byte { return bug() },
		Replayed: func(count int, _ eventlog.Cursor) []byte { return fmt.Appendf(nil, "replayed %d", count) },
	}}
	f.Skip(2, bug)
	require.Zero(t, f.Deliver(entries(t, 4)[1:]), "a stream that is held takes nothing")
	f.Release(bug)
	require.Equal(t, 3, f.Deliver(entries(t, 4)[1:]))
	f.Beat(func(uint64) []byte { return bug() })
	var got strings.Builder
	for in := bufio.NewReader(r); strings.Count(got.String(), "INTERNAL") < 4; {
		b, err := in.ReadByte()
		require.NoError(t, err)
		got.WriteByte(b)
	}
	replayed := strings.Index(got.String(), "replayed 2")
	require.Greater(t, replayed, strings.Index(got.String(), "INTERNAL"))
	require.Greater(t, strings.Index(got.String(), "<4.0>"), replayed)
}

// The messages of an entry are looked up once for each stream that shows it, and the clock is read for messages of
// clients only.
func TestGateLooksAtAnEntryOnce(t *testing.T) {
	codec, err := orbit.Dialect().Bind(nil)
	require.NoError(t, err)
	f, _ := fed(t, codec, 0, io.Discard)
	looked := 0
	f.Hides = func(event.Event) bool { looked++; return false }
	f.src.Clock = func() time.Time { panic("the clock was read") }
	for i, e := range entries(t, 10) {
		require.Equal(t, 1, f.Deliver([]*eventlog.Entry{e}))
		require.Equal(t, i+1, looked)
	}
	require.Equal(t, 10, f.Deliver(entries(t, 10)))
	require.Equal(t, 20, looked)
}

// hasty is a client that looks for its open question the moment a frame is queued for it.
type hasty struct {
	transport.Transport
	questions *Questions
	log       id.Entity
	early     []string // open when frames were queued; "held" = a reader has to wait
}

func (h *hasty) Send(m ...*transport.Message) int {
	if !h.questions.mu.TryLock() {
		h.early = append(h.early, "held")
		return len(m)
	}
	h.questions.mu.Unlock()
	input, _ := h.questions.Open(h.log)
	h.early = append(h.early, input)
	return len(m)
}

// TestAQuestionIsKnownOnceItsFrameIsQueued: a client that answers a frame before its stream has returned does not find the question
// missing, nor open when it has seen its end.
func TestAQuestionIsKnownOnceItsFrameIsQueued(t *testing.T) {
	t.Parallel()
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s")}
	to := &hasty{questions: &Questions{}, log: l.Entity}
	s := New(&Source{Clock: time.Now, Lagged: func(Reason) {}}, Options{
		Life: t.Context(), Log: l, Codec: several(1), To: to, Slot: NewSlot(), Binding: &owner{}, Questions: to.questions,
	})
	for i, step := range []struct {
		data event.Data
		open string
	}{
		{event.InputRequestedData{InputID: "q", RunID: "r", Scope: event.ScopeTool}, "q"},
		{event.JobSuspendedData{}, "q"},
		{event.InputAnsweredData{InputID: "q"}, ""},
	} {
		e, err := event.New(l, "e", "test", time.Unix(0, 0), step.data)
		require.NoError(t, err)
		e.Sequence = uint64(i + 1)
		e.From = e.Sequence
		require.Equal(t, 1, s.Deliver([]*eventlog.Entry{{Event: e}}))
		require.Len(t, to.early, i+1)
		require.Contains(t, []string{"held", step.open}, to.early[i])
		open, _ := to.questions.Open(l.Entity)
		require.Equal(t, step.open, open)
	}
}
