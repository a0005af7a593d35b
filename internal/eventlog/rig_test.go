package eventlog

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry/entrytest"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// serverConfig holds the settings of natsd.
type serverConfig struct {
	Name    string
	Port    int
	Cluster int // port, 0 = alone
	Routes  []string
	Dir     string
}

func TestMain(m *testing.M) {
	bustest.Waiting()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(natsd.dir)
		os.Exit(code)
	}))
}

// natsd is the server for SIGKILL, built once and without the race detector: races in the server's own code do not
// concern these tests.
var natsd struct {
	once sync.Once
	dir  string
	err  error
}

// built returns the path of natsd.
func built(t testing.TB) string {
	natsd.once.Do(func() {
		if natsd.dir, natsd.err = os.MkdirTemp("", "natsd"); natsd.err == nil {
			var said []byte
			if said, natsd.err = exec.Command("go", "build", "-o", natsd.dir, "./internal/natsd").CombinedOutput(); natsd.err != nil {
				natsd.err = fmt.Errorf("%w: %s", natsd.err, said)
			}
		}
	})
	require.NoError(t, natsd.err)
	return filepath.Join(natsd.dir, "natsd")
}

// process is a nats-server in a separate process.
type process struct {
	cfg   serverConfig
	cmd   *exec.Cmd
	stdin io.Closer
}

func (p *process) start(t testing.TB) {
	text, err := json.Marshal(p.cfg)
	require.NoError(t, err)
	p.cmd = exec.Command(built(t), string(text))
	p.cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	p.cmd.Stderr = os.Stderr
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "server %s did not start", p.cfg.Name)
	require.Equal(t, "ready\n", line)
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.stdin.Close()
}

// rig is an installation of NATS that the conformance suite runs on.
type rig struct {
	name     string
	replicas int
	procs    []*process
}

// newRig starts n servers, each in its own process, with all streams.
func newRig(t testing.TB, n int) *rig {
	r := &rig{name: fmt.Sprintf("R%d", n), replicas: n}
	ports, dir := freeport.Ports(t, 2*n), bustest.Store(t)
	for i := range n {
		c := serverConfig{Name: fmt.Sprintf("n%d", i), Port: ports[i], Dir: fmt.Sprintf("%s/n%d", dir, i)}
		if n > 1 {
			c.Cluster = ports[n+i]
			for _, p := range ports[n:] {
				c.Routes = append(c.Routes, fmt.Sprintf("nats://127.0.0.1:%d", p))
			}
		}
		r.procs = append(r.procs, &process{cfg: c})
	}
	for _, p := range r.procs {
		p.start(t)
		t.Cleanup(p.kill)
	}
	r.bootstrap(t)
	return r
}

func (r *rig) bootstrap(t testing.TB) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn := r.connect(t)
	top := bus.DefaultTopology()
	top.Replicas = r.replicas
	require.Eventually(t, func() bool { return bus.Bootstrap(ctx, conn, top) == nil }, time.Minute, 100*time.Millisecond)
}

func (r *rig) connect(t testing.TB) *bus.Conn {
	urls := make([]string, 0, len(r.procs))
	for _, p := range r.procs {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", p.cfg.Port))
	}
	return connect(t, strings.Join(urls, ","))
}

func connect(t testing.TB, urls string) *bus.Conn {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := bus.Connect(ctx, bus.Config{URL: urls, Name: "waggle/test"})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// store returns a Store over a separate connection.
func (r *rig) store(t testing.TB, o Options) *Store { return newStore(t, r.connect(t), o) }

func newStore(t testing.TB, conn *bus.Conn, o Options) *Store {
	s, err := New(conn, o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// leader returns the process that leads the stream.
func (r *rig) leader(t testing.TB, conn *bus.Conn, stream string) *process {
	var found *process
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		st, err := conn.JS().Stream(ctx, stream)
		if err != nil {
			return false
		}
		c := st.CachedInfo().Cluster
		for _, p := range r.procs {
			if len(r.procs) == 1 || c != nil && c.Leader == p.cfg.Name {
				found = p
			}
		}
		return found != nil
	}, time.Minute, 50*time.Millisecond)
	return found
}

// stepDown makes the stream's leader give up, and waits for another.
func (r *rig) stepDown(t testing.TB, conn *bus.Conn, stream string) {
	require.Eventually(t, func() bool {
		m, err := conn.NATS().Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 2*time.Second)
		return err == nil && !strings.Contains(string(m.Data), `"error"`)
	}, time.Minute, 50*time.Millisecond)
	r.leader(t, conn, stream)
}

// single returns a connection to a server within the test's process.
func single(t testing.TB) *bus.Conn { return bustest.Single(t) }

func testLog(name string) subject.Log {
	e, err := id.ParseEntity(name)
	if err != nil {
		panic(err)
	}
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: e}
}

func newEvent(log subject.Log, eventID string, data event.Data) event.Event {
	ev, err := event.New(log, eventID, "test", time.Now(), data)
	if err != nil {
		panic(err)
	}
	return ev
}

func delta(message, text string) event.MessageDeltaData { return entrytest.Delta(message, text) }

// texts folds a log the way a viewer does.
func texts(t require.TestingT, log []*Entry) map[string]string {
	return entrytest.Texts(t, func(yield func(event.Event, []byte) bool) {
		for _, e := range log {
			if !yield(e.Event, e.Raw) {
				return
			}
		}
	})
}

// stored returns the entry that a log would hold.
func stored(t require.TestingT, log subject.Log, seq uint64, data event.Data) *Entry {
	ev := newEvent(log, fmt.Sprint("e", seq), data)
	ev.Sequence = seq
	raw, err := entry.Encode(ev)
	require.NoError(t, err)
	e, err := entry.Decode(ev.Subject, seq, seq*3, raw)
	require.NoError(t, err)
	return e
}

func notice(log subject.Log, eventID string) event.Event {
	return newEvent(log, eventID, event.NoticeData{Level: "info", Code: "test", Message: eventID})
}

// missing returns a decide function that appends the events that have is false for.
func missing(have func(id string) bool, events ...event.Event) func() ([]event.Event, error) {
	return func() ([]event.Event, error) {
		var out []event.Event
		for _, ev := range events {
			if !have(ev.ID) {
				out = append(out, ev)
			}
		}
		return out, nil
	}
}

// fold is the simplest state of a log: its entries, in order.
type fold struct{ ids []string }

func (f *fold) observe(e *Entry) { f.ids = append(f.ids, e.ID) }

func (f *fold) has(eventID string) bool {
	for _, s := range f.ids {
		if s == eventID {
			return true
		}
	}
	return false
}

// fill appends n notices to the log.
func fill(t testing.TB, s *Store, log subject.Log, from, n int) {
	w := s.Writer(log, nil)
	for i := range n {
		sent := false
		require.NoError(t, w.Append(t.Context(), func() ([]event.Event, error) {
			if sent {
				return nil, nil
			}
			sent = true
			return []event.Event{notice(log, fmt.Sprintf("n%d", from+i))}, nil
		}))
	}
}

// inject stores an event without the knowledge of any writer and does not announce it.
func inject(t testing.TB, conn *bus.Conn, log subject.Log, ev event.Event, seq, expect uint64) uint64 {
	ev.Sequence = seq
	raw, err := entry.Encode(ev)
	require.NoError(t, err)
	m := &nats.Msg{Subject: subject.DefaultPartitions.Event(log), Data: raw, Header: nats.Header{
		event.HeaderMsgID: {ev.DedupeID()}, event.HeaderSeq: {fmt.Sprint(seq)}, event.HeaderType: {string(ev.Type)},
		nats.ExpectedLastSubjSeqHdr: {fmt.Sprint(expect)},
	}}
	answer, err := conn.NATS().RequestMsg(m, 10*time.Second)
	require.NoError(t, err)
	var a ack
	require.NoError(t, json.Unmarshal(answer.Data, &a))
	require.Nil(t, a.Error)
	return a.Seq
}

var errSynthetic = errors.New("synthetic")
