package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/manager"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/session"
	"github.com/waggle-dev/waggle/services/session/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

const patience = 60 * time.Second

var (
	log  = sessionLog("s1")
	keys = [][]byte{bytes.Repeat([]byte("k"), seal.MinKey)}
)

func sessionLog(name string) subject.Log {
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
}

// rig is an installation: a bus with what works on it.
type rig struct {
	t    *testing.T
	ctx  context.Context
	conn *bus.Conn
	log  *eventlog.Store
	dir  *directory.Directory
	send *command.Sender
	now  clock
}

// clock is a clock that a test may move.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

func newRig(t *testing.T) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, conn: bustest.Single(t)}
	var err error
	r.log, err = eventlog.New(r.conn, eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(r.log.Close)
	r.dir, err = directory.Open(ctx, r.conn)
	require.NoError(t, err)
	t.Cleanup(r.dir.Close)
	r.send = command.NewSender(r.conn)
	return r
}

func (r *rig) deps(name string) manager.Deps {
	return manager.Deps{
		Conn: r.conn, Log: r.log, Commands: r.send, Directory: r.dir, Instance: id.MustName(name), Logger: zerolog.Nop(),
	}
}

func (r *rig) service(name string, cfg session.Config) *session.Service {
	r.t.Helper()
	cfg.Now = r.now.now
	s, err := session.New(cfg, r.deps(name))
	require.NoError(r.t, err)
	return s
}

func (r *rig) start(name string, cfg session.Config) *session.Service {
	r.t.Helper()
	s := r.service(name, cfg)
	require.NoError(r.t, s.Start(r.ctx))
	r.t.Cleanup(s.Stop)
	return s
}

func (r *rig) startPipeline(name string) *pipeline.Service {
	r.t.Helper()
	s, err := pipeline.New(pipeline.Config{}, r.deps(name))
	require.NoError(r.t, err)
	require.NoError(r.t, s.Start(r.ctx))
	r.t.Cleanup(s.Stop)
	return s
}

func (r *rig) command(l subject.Log, service, verb id.Name, commandID string, data any) {
	r.t.Helper()
	raw, err := json.Marshal(data)
	require.NoError(r.t, err)
	require.NoError(r.t, r.send.Send(r.ctx, cmd.Command{
		ID: commandID, Service: service, Verb: verb, Tenant: l.Tenant, Key: l.Entity, Time: time.Now(), Data: raw,
	}))
}

func (r *rig) open(l subject.Log, p event.Preferences) {
	r.t.Helper()
	r.command(l, cmd.Session, cmd.Open, "open", cmd.OpenSession{Dialect: "myagent", Preferences: p})
	r.until(l, event.SessionCreated)
}

// until reads the log until an event of the type is there.
func (r *rig) until(l subject.Log, typ event.Type) []event.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	var out []event.Event
	for e, err := range r.log.Tail(ctx, l, eventlog.Cursor{}) {
		require.NoError(r.t, err, "waiting for %s", typ)
		out = append(out, e.Event)
		if e.Type == typ {
			return out
		}
	}
	return out
}

// all returns what is in the log.
func (r *rig) all(l subject.Log) []event.Event {
	r.t.Helper()
	var out []event.Event
	require.NoError(r.t, r.log.Read(r.ctx, l, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		out = append(out, e.Event)
		return nil
	}))
	return out
}

// append appends events as somebody else does. It returns the newest position.
func (r *rig) append(l subject.Log, data ...event.Data) eventlog.Cursor {
	r.t.Helper()
	w := r.log.Writer(l, nil)
	require.NoError(r.t, w.Sync(r.ctx))
	for _, d := range data {
		e, err := event.New(l, fmt.Sprintf("%s-%d", r.t.Name(), w.Seq()), "test", r.now.now(), d)
		require.NoError(r.t, err)
		from := w.Seq()
		require.NoError(r.t, w.Append(r.ctx, func() ([]event.Event, error) {
			if w.Seq() > from {
				return nil, nil
			}
			return []event.Event{e}, nil
		}))
	}
	return w.Cursor()
}

// expire removes the events up to the position, as age does.
func (r *rig) expire(l subject.Log, through eventlog.Cursor) {
	r.t.Helper()
	body := fmt.Sprintf(`{"filter":%q,"seq":%d}`, l.Event(), through.Stream+1)
	m, err := r.conn.NATS().RequestWithContext(r.ctx, "$JS.API.STREAM.PURGE."+l.Stream(), []byte(body))
	require.NoError(r.t, err)
	require.Contains(r.t, string(m.Data), `"success":true`)
}

func (r *rig) attach(in cmd.AttachRequest) (cmd.AttachReply, error) {
	r.t.Helper()
	if in.Tenant.IsZero() {
		in.Tenant = id.DefaultTenant
	}
	if in.Session.IsZero() {
		in.Session = log.Entity
	}
	var out cmd.AttachReply
	err := rpc.Call(r.ctx, r.conn, cmd.Session, cmd.Attach, in, &out)
	return out, err
}

func (r *rig) export(in cmd.ExportRequest) (event.StateExportedData, error) {
	r.t.Helper()
	if in.Tenant.IsZero() {
		in.Tenant, in.Session = log.Tenant, log.Entity
	}
	var out event.StateExportedData
	err := rpc.Call(r.ctx, r.conn, cmd.Session, cmd.Export, in, &out)
	return out, err
}

func (r *rig) restore(signed json.RawMessage) (cmd.ImportReply, error) {
	r.t.Helper()
	var out cmd.ImportReply
	err := rpc.Call(r.ctx, r.conn, cmd.Session, cmd.Import, cmd.ImportRequest{
		Tenant: id.DefaultTenant, Principal: "alice", Signed: signed,
	}, &out)
	return out, err
}

func isFault(t testing.TB, err error, code fault.Code) *fault.Fault {
	t.Helper()
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, code, f.Code, "%v", err)
	return f
}

// received returns the first n messages that were received.
func (r *rig) received(l subject.Log, n int) []event.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	var out []event.Event
	for e, err := range r.log.Tail(ctx, l, eventlog.Cursor{}) {
		require.NoError(r.t, err)
		if e.Type == event.MessageReceived {
			out = append(out, e.Event)
		}
		if len(out) == n {
			break
		}
	}
	return out
}
