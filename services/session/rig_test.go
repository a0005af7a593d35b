package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/session"
	"github.com/waggle-dev/waggle/services/session/seal"
)

func TestMain(m *testing.M) {
	bustest.Waiting()
	goleak.VerifyTestMain(m, bustest.Leftovers()...)
}

const maxWait = 60 * time.Second

var (
	log  = sessionLog("s1")
	keys = [][]byte{bytes.Repeat([]byte("k"), seal.MinKey)}
)

func sessionLog(name string) subject.Log {
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
}

// rig is an installation: a bus with what works on it.
type rig struct {
	*servicetest.Rig
	now servicetest.Clock
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{Rig: servicetest.New(t, bustest.Single(t), maxWait)}
}

func (r *rig) service(name string, cfg session.Config) *session.Service {
	r.T.Helper()
	cfg.Now = r.now.Now
	s, err := session.New(cfg, r.Deps(name))
	require.NoError(r.T, err)
	return s
}

func (r *rig) start(name string, cfg session.Config) *session.Service {
	r.T.Helper()
	s := r.service(name, cfg)
	r.Run(s, nil)
	return s
}

func (r *rig) startPipeline(name string) *pipeline.Service {
	r.T.Helper()
	s, err := pipeline.New(pipeline.Config{}, r.Deps(name))
	r.Run(s, err)
	return s
}

func (r *rig) command(l subject.Log, service, verb id.Name, commandID string, data any) {
	r.T.Helper()
	r.Command(cmd.Command{ID: commandID, Service: service, Verb: verb, Tenant: l.Tenant, Key: l.Entity, Time: time.Now()}, data)
}

func (r *rig) open(l subject.Log, p event.Preferences) {
	r.T.Helper()
	r.command(l, cmd.Session, cmd.Open, "open", cmd.OpenSession{Dialect: "myagent", Preferences: p})
	r.Until(l, event.SessionCreated, 1)
}

// append appends events as another writer. It returns the newest position.
func (r *rig) append(l subject.Log, data ...event.Data) eventlog.Cursor {
	r.T.Helper()
	w := r.Log.Writer(l, nil)
	require.NoError(r.T, w.Sync(r.Ctx))
	for _, d := range data {
		e, err := event.New(l, fmt.Sprintf("%s-%d", r.T.Name(), w.Seq()), "test", r.now.Now(), d)
		require.NoError(r.T, err)
		from := w.Seq()
		require.NoError(r.T, w.Append(r.Ctx, func() ([]event.Event, error) {
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
	r.T.Helper()
	body := fmt.Sprintf(`{"filter":%q,"seq":%d}`, subject.DefaultPartitions.Event(l), through.Stream+1)
	m, err := r.Conn.NATS().RequestWithContext(r.Ctx, "$JS.API.STREAM.PURGE."+subject.DefaultPartitions.Stream(l), []byte(body))
	require.NoError(r.T, err)
	require.Contains(r.T, string(m.Data), `"success":true`)
}

func (r *rig) attach(in cmd.AttachRequest) (cmd.AttachReply, error) {
	r.T.Helper()
	if in.Tenant.IsZero() {
		in.Tenant = id.DefaultTenant
	}
	if in.Session.IsZero() {
		in.Session = log.Entity
	}
	in.All = in.Principal == "" // an operator
	var out cmd.AttachReply
	err := rpc.Call(r.Ctx, r.Conn, cmd.Session, cmd.Attach, in, &out)
	return out, err
}

func (r *rig) export(in cmd.ExportRequest) (event.StateExportedData, error) {
	r.T.Helper()
	if in.Tenant.IsZero() {
		in.Tenant, in.Session = log.Tenant, log.Entity
	}
	in.All = in.Principal == ""
	var out event.StateExportedData
	err := rpc.Call(r.Ctx, r.Conn, cmd.Session, cmd.Export, in, &out)
	return out, err
}

func (r *rig) restore(signed json.RawMessage) (cmd.ImportReply, error) {
	r.T.Helper()
	var out cmd.ImportReply
	err := rpc.Call(r.Ctx, r.Conn, cmd.Session, cmd.Import, cmd.ImportRequest{
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
