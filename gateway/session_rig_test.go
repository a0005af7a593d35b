package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// pathSessions is where sockets that hold several sessions are served.
const pathSessions = "/ws/session"

// withSessions adds the protocol whose sockets hold several sessions to the gateway.
func withSessions(_ *gateway.Config, dep *gateway.Deps) {
	addRoutes(dep, map[string]gateway.Route{pathSessions: gateway.Multi(sessionProtocol())})
}

// sessionService answers requests in place of the session service.
type sessionService struct {
	r   *rig
	srv *rpc.Server

	mu       sync.Mutex
	language string
	acked    map[string]uint64 // by session and client
	asked    []wirecmd.AttachRequest
	blind    bool   // ignores that a history has expired
	restored bool   // the answer to an import
	pause    func() // called before the answer that a session does not exist; nil = not
}

// startSessionService starts the session service of the test, and a gateway whose sockets hold
// several sessions unless the rig has a gateway.
func startSessionService(r *rig, opts ...option) *sessionService {
	o := &sessionService{r: r, acked: map[string]uint64{}}
	o.serve()
	r.path = pathSessions
	if r.srv == nil {
		r.srv = r.server(append([]option{withSessions}, opts...)...)
		r.serve()
	}
	return o
}

// serve starts the service.
func (o *sessionService) serve() {
	o.srv = rpc.NewServer(o.r.conn, rpc.Config{Service: wirecmd.Session, Logger: zerolog.Nop()})
	rpc.Handle(o.srv, wirecmd.Attach, o.attach)
	rpc.Handle(o.srv, wirecmd.Export, o.export)
	rpc.Handle(o.srv, wirecmd.Import, o.restore)
	require.NoError(o.r.t, o.srv.Start(context.Background()))
	o.r.t.Cleanup(o.srv.Stop)
}

func (o *sessionService) attach(ctx context.Context, in wirecmd.AttachRequest) (out wirecmd.AttachReply, err error) {
	o.mu.Lock() // not while it reads logs: many clients ask at once
	o.asked = append(o.asked, in)
	acked, language, blind, pause := o.acked[in.Session.String()+" "+in.ClientID], o.language, o.blind, o.pause
	o.mu.Unlock()
	l := subject.Log{Tenant: in.Tenant, Kind: id.KindSession, Entity: in.Session}
	last, err := o.r.log.Last(ctx, l)
	if err != nil {
		return out, err
	}
	if last.Seq == 0 {
		if pause != nil {
			pause()
		}
		return out, fault.New(fault.SessionExpired)
	}
	var after eventlog.Cursor
	switch {
	case in.Live:
		after = last
	case in.EventID != "":
		after, err = eventlog.ParseCursor(in.EventID)
	case in.After != nil:
		after.Seq = *in.After
	default:
		after.Seq = acked
	}
	if err != nil || after.Seq > last.Seq {
		return out, fault.New(fault.CursorInvalid).At("last_seq")
	}
	out = wirecmd.AttachReply{Head: last.Seq, Language: language}
	if in.Hash != "" {
		matched := in.Hash == "right"
		out.HashMatched = &matched
	}
	if t, ok := errors.AsType[*eventlog.TruncatedError](o.r.log.Read(ctx, l, after, func(*eventlog.Entry) error { return errEnough })); ok && !blind {
		out.FirstSeq, after = t.First, eventlog.Cursor{Seq: t.First - 1}
		out.Exported = &event.StateExportedData{Seq: last.Seq, Hash: "hash", State: json.RawMessage(`{}`)}
	}
	out.After = after.String()
	return out, nil
}

var errEnough = errors.New("enough")

func (o *sessionService) export(ctx context.Context, in wirecmd.ExportRequest) (out event.StateExportedData, err error) {
	o.mu.Lock() // a test may hold it, so that the answer waits
	defer o.mu.Unlock()
	l := subject.Log{Tenant: in.Tenant, Kind: id.KindSession, Entity: in.Session}
	last, err := o.r.log.Last(ctx, l)
	switch {
	case err != nil:
		return out, err
	case last.Seq == 0:
		return out, fault.New(fault.SessionExpired)
	}
	state := fmt.Sprintf(`{"max":%d,"history":%t}`, in.MaxHistory, in.History)
	return event.StateExportedData{Seq: last.Seq, Hash: "hash", State: json.RawMessage(state)}, nil
}

func (o *sessionService) restore(_ context.Context, in wirecmd.ImportRequest) (out wirecmd.ImportReply, err error) {
	var signed struct{ Session string }
	if err := json.Unmarshal(in.Signed, &signed); err != nil {
		return out, fault.New(fault.StateTampered)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out.Session, err = id.ParseEntity(signed.Session)
	out.Restored, out.Exported = o.restored, &wirecmd.Exported{Seq: 1}
	return out, err
}

// attaches returns the requests so far.
func (o *sessionService) attaches() []wirecmd.AttachRequest {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

// dialMulti opens a socket that holds several sessions, on which every event has a frame.
func (r *rig) dialMulti(header ...string) (c *client, link string) {
	r.t.Helper()
	c = r.dial("deltas=all", header...)
	s := c.expectFrame("connected")
	require.NotEmpty(r.t, s.Link)
	return c, s.Link
}

// ask sends a frame.
func (c *client) ask(a multiRequest) {
	c.t.Helper()
	b, err := json.Marshal(a.message())
	require.NoError(c.t, err)
	c.write(frame(fin|opText, b))
}

// expectFrame returns the next frame, which has to be of the kind.
func (c *client) expectFrame(kind string) multiFrame {
	c.t.Helper()
	b, err := c.text()
	require.NoError(c.t, err, "instead of %s", kind)
	s, err := readMulti(b)
	require.NoError(c.t, err, "%s", b)
	require.Equal(c.t, kind, s.Kind, "%s", b)
	return s
}

// expectEvents reads the next frames, which have to be these events of a log.
func (c *client) expectEvents(l subject.Log, from, to uint64) {
	c.t.Helper()
	for seq := from; seq <= to; seq++ {
		s := c.expectFrame("event")
		require.Equal(c.t, l.Entity.String(), s.Session)
		require.Equal(c.t, seq, s.Seq)
	}
}

// openSession opens a session on the socket with a first message, and returns its log and the
// command that makes it.
func (c *client) openSession(r *rig, a multiRequest) (subject.Log, wirecmd.Command) {
	c.t.Helper()
	a.Ask = "open"
	c.ask(a)
	s := c.expectFrame("event")
	require.Equal(c.t, wire.AgentSessionCreated, s.Type)
	require.EqualValues(c.t, 1, s.Seq)
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(s.Session)}
	c.ask(multiRequest{Ask: "act", Session: l.Entity.String(), Text: "first"})
	open := r.nextCommand(l.Entity.String())
	require.Equal(c.t, wirecmd.SendMessage, r.nextCommand(l.Entity.String()).Verb)
	return l, open
}

func ptr[T any](v T) *T { return &v }

// handClock is a clock that only the test moves.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
