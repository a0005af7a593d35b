package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// pathSessions is where sockets that hold several sessions are served.
const pathSessions = "/ws/session"

// holding gives the gateway a dialect whose sockets hold several sessions.
func holding(d dialect.MultiDialect) option {
	return func(_ *gateway.Config, dep *gateway.Deps) {
		dep.Routes = maps.Clone(dep.Routes)
		dep.Routes[pathSessions] = gateway.Multi(d)
	}
}

// office answers what the session service is asked for.
type office struct {
	r   *rig
	srv *rpc.Server

	mu       sync.Mutex
	language string
	acked    map[string]uint64 // by session and client
	asked    []wirecmd.AttachRequest
	blind    bool // it does not notice that a history has expired
	restored bool // what an import answers
}

// opens starts a gateway on the shared server whose sockets hold several sessions.
func opens(r *rig, opts ...option) *office {
	o := &office{r: r, acked: map[string]uint64{}}
	o.serve()
	r.path = pathSessions
	if r.srv == nil {
		r.srv = r.server(append([]option{holding(talk{})}, opts...)...)
		r.serve()
	}
	return o
}

// serve starts the service.
func (o *office) serve() {
	o.srv = rpc.NewServer(o.r.conn, rpc.Config{Service: wirecmd.Session, Logger: zerolog.Nop()})
	rpc.Handle(o.srv, wirecmd.Attach, o.attach)
	rpc.Handle(o.srv, wirecmd.Export, o.export)
	rpc.Handle(o.srv, wirecmd.Import, o.restore)
	require.NoError(o.r.t, o.srv.Start(context.Background()))
	o.r.t.Cleanup(o.srv.Stop)
}

func (o *office) attach(ctx context.Context, in wirecmd.AttachRequest) (out wirecmd.AttachReply, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, in)
	l := subject.Log{Tenant: in.Tenant, Kind: id.KindSession, Entity: in.Session}
	last, err := o.r.log.Last(ctx, l)
	if err != nil {
		return out, err
	}
	if last.Seq == 0 {
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
		after.Seq = o.acked[in.Session.String()+" "+in.ClientID]
	}
	if err != nil || after.Seq > last.Seq {
		return out, fault.New(fault.CursorInvalid).At("last_seq")
	}
	out = wirecmd.AttachReply{Head: last.Seq, Language: o.language}
	if in.Hash != "" {
		matched := in.Hash == "right"
		out.HashMatched = &matched
	}
	if t, ok := errors.AsType[*eventlog.TruncatedError](o.r.log.Read(ctx, l, after, func(*eventlog.Entry) error { return errEnough })); ok && !o.blind {
		out.FirstSeq, after = t.First, eventlog.Cursor{Seq: t.First - 1}
		out.Exported = &event.StateExportedData{Seq: last.Seq, Hash: "hash", State: json.RawMessage(`{}`)}
	}
	out.After = after.String()
	return out, nil
}

var errEnough = errors.New("enough")

func (o *office) export(ctx context.Context, in wirecmd.ExportRequest) (out event.StateExportedData, err error) {
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

func (o *office) restore(_ context.Context, in wirecmd.ImportRequest) (out wirecmd.ImportReply, err error) {
	var session string
	if err := json.Unmarshal(in.Signed, &session); err != nil {
		return out, fault.New(fault.StateTampered)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out.Session, err = id.ParseEntity(session)
	out.Restored, out.Exported = o.restored, &wirecmd.Exported{Seq: 1}
	return out, err
}

// attaches returns what has been asked so far.
func (o *office) attaches() []wirecmd.AttachRequest {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

// talker opens a socket that holds several sessions.
func (r *rig) talker(header ...string) (c *client, link string) {
	r.t.Helper()
	c = r.dial("", header...)
	s := c.said("connected")
	require.NotEmpty(r.t, s.Link)
	return c, s.Link
}

// ask sends a frame.
func (c *client) ask(a asked) {
	c.t.Helper()
	b, err := json.Marshal(a)
	require.NoError(c.t, err)
	c.write(frame(fin|opText, b))
}

// said returns the next frame, which has to be of the kind.
func (c *client) said(kind string) said {
	c.t.Helper()
	b, err := c.text()
	require.NoError(c.t, err, "instead of %s", kind)
	var s said
	require.NoError(c.t, json.Unmarshal(b, &s), "%s", b)
	require.Equal(c.t, kind, s.Kind, "%s", b)
	return s
}

// sees returns the next frames, which have to be these events of a log.
func (c *client) sees(l subject.Log, from, to uint64) {
	c.t.Helper()
	for seq := from; seq <= to; seq++ {
		s := c.said("event")
		require.Equal(c.t, l.Name(), s.Session)
		require.Equal(c.t, seq, s.Seq)
	}
}

// opened makes a session on the socket and returns its log.
func (c *client) opened(r *rig, a asked) (subject.Log, wirecmd.Command) {
	c.t.Helper()
	a.Ask = string(dialect.Open)
	c.ask(a)
	s := c.said("event")
	require.Equal(c.t, string(event.SessionCreated), s.Type)
	require.EqualValues(c.t, 1, s.Seq)
	l, err := subject.ParseName(s.Session)
	require.NoError(c.t, err)
	return l, r.nextCommand(l.Entity.String())
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
