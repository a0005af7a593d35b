package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// allCommands are those of all services, in the order in which they were sent.
var allCommands = subject.StreamSubjects(subject.StreamCommands)[0]

// maxWait bounds every wait: machines may be busy.
const maxWait = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(envSockets) != "" {
		os.Exit(beSockets())
	}
	bustest.Waiting()
	code := m.Run()
	for _, stop := range servers.stop {
		stop()
	}
	if err := goleak.Find(bustest.Leftovers()...); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// servers are the NATS servers of the tests that do not restart or reconfigure one. A test
// has one for itself as long as it runs; parallel tests have several servers.
var servers struct {
	mu    sync.Mutex
	free  []*natsServer
	taken map[testing.TB]*natsServer
	stop  []func()
}

type natsServer struct{ url string }

// sharedBus returns a connection of the test's own to the server that the test has until it
// ends. A subtest has a server of its own.
func sharedBus(t testing.TB) *bus.Conn {
	t.Helper()
	servers.mu.Lock()
	defer servers.mu.Unlock()
	if s := servers.taken[t]; s != nil {
		return bustest.Dial(t, s.url)
	}
	s := &natsServer{}
	if n := len(servers.free); n > 0 {
		s, servers.free = servers.free[n-1], servers.free[:n-1]
	} else {
		s.url = startServer(t)
	}
	if servers.taken == nil {
		servers.taken = map[testing.TB]*natsServer{}
	}
	servers.taken[t] = s
	t.Cleanup(func() {
		servers.mu.Lock()
		defer servers.mu.Unlock()
		delete(servers.taken, t)
		servers.free = append(servers.free, s)
	})
	return bustest.Dial(t, s.url)
}

// startServer makes an account that lasts until all tests have ended. The caller has locked.
func startServer(t testing.TB) (url string) {
	t.Helper()
	url, drop := bustest.Account(t)
	servers.stop = append(servers.stop, drop)
	bustest.Bootstrap(t, bustest.Dial(t, url), bus.DefaultTopology())
	return url
}

// rig is a gateway with a real bus behind it and, in the place of the services, the
// test itself, which writes logs.
type rig struct {
	t    testing.TB
	conn *bus.Conn
	log  *eventlog.Store
	dir  *directory.Directory
	reg  *prometheus.Registry
	srv  *gateway.Server
	addr string
	path string // of the sockets that dial opens

	indexed bool // append keeps the index, in the place of the session service

	sessions *sessionService // of everyDialect

	mu       sync.Mutex
	commands map[string]chan wirecmd.Command // by session
	opens    int                             // commands that ask for a session; guarded by mu
	writers  map[subject.Log]*eventlog.Writer
	mute     bool // new sessions are not made
}

// option changes the gateway before it starts.
type option func(*gateway.Config, *gateway.Deps)

// start starts a gateway on the shared server.
func start(t testing.TB, opts ...option) *rig { t.Helper(); return startOn(t, sharedBus(t), opts...) }

func startOn(t testing.TB, conn *bus.Conn, opts ...option) *rig {
	t.Helper()
	r := prepare(t, conn)
	r.srv = r.server(opts...)
	r.serve()
	return r
}

// prepare makes everything but the gateway.
func prepare(t testing.TB, conn *bus.Conn) *rig {
	t.Helper()
	r := &rig{
		t: t, conn: conn, reg: prometheus.NewRegistry(), path: "/ws",
		commands: map[string]chan wirecmd.Command{}, writers: map[subject.Log]*eventlog.Writer{},
	}
	var err error
	r.log, err = eventlog.New(conn, eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(r.log.Close)
	sub, err := conn.NATS().Subscribe(allCommands, r.command)
	require.NoError(t, err)
	require.NoError(t, conn.NATS().Flush())
	ended := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(ended) })
	t.Cleanup(func() { // the handler writes logs: it ends before they do
		_ = sub.Unsubscribe()
		<-ended
	})
	return r
}

func (r *rig) server(opts ...option) *gateway.Server {
	r.t.Helper()
	cfg, dep := gateway.Config{ // tests share a slow machine: no socket is late unless a test wants that
		Addr: "127.0.0.1:0", HandshakeTimeout: maxWait, FirstMessage: maxWait, ReadyTimeout: maxWait, MessageTimeout: 5 * maxWait,
		PingInterval: 5 * maxWait, PongTimeout: 5 * maxWait, WriteStall: 5 * maxWait, Heartbeat: 5 * maxWait,
	}, r.deps()
	cfg.Participants.Dead = 5 * maxWait // of those that do not read, either
	for _, o := range opts {
		o(&cfg, &dep)
	}
	s, err := gateway.New(cfg, dep)
	require.NoError(r.t, err)
	return s
}

// deps returns what a gateway works with.
func (r *rig) deps() gateway.Deps {
	return gateway.Deps{
		Logger: logger(), Registry: r.reg, Conn: r.conn, Log: r.log, Commands: command.NewSender(r.conn),
		Directory: r.dir, Auth: auth.Anonymous(), Routes: map[string]gateway.Route{"/ws": gateway.Single(orbit.Dialect())}, Version: "test",
	}
}

func logger() zerolog.Logger {
	if os.Getenv("GATEWAY_TEST_LOG") == "" {
		return zerolog.Nop()
	}
	return zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr})
}

func (r *rig) serve() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	require.NoError(r.t, r.srv.Start(ctx))
	r.t.Cleanup(r.srv.Stop)
	r.addr = r.srv.Addr().String()
}

// command takes what the gateway sends. It makes the sessions that are asked for.
func (r *rig) command(m *nats.Msg) {
	var c wirecmd.Command
	if err := json.Unmarshal(m.Data, &c); err != nil {
		return
	}
	r.mu.Lock()
	mute := r.mute
	if c.Verb == wirecmd.Open {
		r.opens++
	}
	r.mu.Unlock()
	if c.Verb == wirecmd.Open && !mute {
		_ = r.make(c)
	}
	if mute {
		r.inbox("") <- c
	}
	r.inbox(c.Key.String()) <- c
}

// make makes the session that a command asks for.
func (r *rig) make(open wirecmd.Command) error {
	l := subject.Log{Tenant: open.Tenant, Kind: id.KindSession, Entity: open.Key}
	return r.append(l, "created", event.SessionCreatedData{Dialect: "orbit", Principal: open.Principal})
}

// opened returns the number of sessions that were asked for.
func (r *rig) opened() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opens
}

// anyCommand returns the next command of any session, of a rig that is mute. The
// session's own inbox does not have it any more.
func (r *rig) anyCommand() wirecmd.Command {
	r.t.Helper()
	c := r.nextCommand("")
	<-r.inbox(c.Key.String())
	return c
}

// inbox returns the commands for a session.
func (r *rig) inbox(session string) chan wirecmd.Command {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch, ok := r.commands[session]
	if !ok {
		ch = make(chan wirecmd.Command, 4096)
		r.commands[session] = ch
	}
	return ch
}

// nextCommand returns the next command for a session.
func (r *rig) nextCommand(session string) wirecmd.Command {
	r.t.Helper()
	select {
	case c := <-r.inbox(session):
		return c
	case <-time.After(maxWait):
		require.FailNow(r.t, "no command came for session "+session)
		return wirecmd.Command{}
	}
}

// append writes one event to a log, as a service would.
func (r *rig) append(l subject.Log, eventID string, data event.Data) error {
	e, err := event.New(l, eventID, "test", time.Now(), data)
	if err != nil {
		return err
	}
	r.mu.Lock()
	w := r.writers[l]
	if w == nil {
		w = r.log.Writer(l, func(*eventlog.Entry) {})
		r.writers[l] = w
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	once := []event.Event{e}
	err = w.Append(ctx, func() ([]event.Event, error) {
		out := once
		once = nil
		return out, nil
	})
	if err != nil || l.Kind != id.KindSession || !r.indexed {
		return err
	}
	return index.New(r.conn, r.log).Update(ctx, l)
}

// session makes a session of a tenant with some runs in it and returns its log. Each
// run is one event that ORBIT shows as an agent_response with text as its message.
func (r *rig) session(tenant string, texts ...string) subject.Log {
	r.t.Helper()
	tn, err := id.ParseTenant(tenant)
	require.NoError(r.t, err)
	l := subject.Log{Tenant: tn, Kind: id.KindSession, Entity: id.EntityFromExternal(unique())}
	require.NoError(r.t, r.append(l, "created", event.SessionCreatedData{Dialect: "orbit"}))
	r.answers(l, texts...)
	return l
}

// answers appends runs.
func (r *rig) answers(l subject.Log, texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		require.NoError(r.t, r.append(l, unique(), event.RunCompletedData{RunID: "r", ExecutionID: "exec_x", Attempt: 1, Content: text}))
	}
}

var counted struct {
	mu sync.Mutex
	n  int
}

// unique returns an id that no other test has.
func unique() string {
	counted.mu.Lock()
	defer counted.mu.Unlock()
	counted.n++
	return fmt.Sprintf("s%d-%d", os.Getpid(), counted.n)
}

// get makes a request and returns status and body.
func (r *rig) get(path string, header ...string) (int, string, http.Header) {
	r.t.Helper()
	return r.request(http.MethodGet, path, header...)
}

// post posts JSON.
func (r *rig) post(path, body string, header ...string) (int, string) {
	r.t.Helper()
	status, text, _ := r.send(http.MethodPost, path, strings.NewReader(body), append(header, "Content-Type", "application/json")...)
	return status, text
}

func (r *rig) request(method, path string, header ...string) (int, string, http.Header) {
	r.t.Helper()
	return r.send(method, path, nil, header...)
}

func (r *rig) send(method, path string, content io.Reader, header ...string) (int, string, http.Header) {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://"+r.addr+path, content)
	require.NoError(r.t, err)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Add(header[i], header[i+1])
	}
	tr := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: maxWait}).DialContext}
	res, err := (&http.Client{Transport: tr, Timeout: maxWait}).Do(req)
	require.NoError(r.t, err)
	defer func() { _ = res.Body.Close() }()
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := res.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			r.keepsContract(res, b.String())
			return res.StatusCode, b.String(), res.Header
		}
	}
}

// keepsContract checks an answer of the HTTP API against its OpenAPI document.
func (r *rig) keepsContract(res *http.Response, body string) {
	r.t.Helper()
	contract, err := apitest.Current()
	require.NoError(r.t, err)
	if strings.HasPrefix(res.Request.URL.Path, api.Prefix) {
		require.NoError(r.t, contract.Check(res.Request, res.StatusCode, res.Header, []byte(body)))
	}
}

// metric returns the value of a metric, summed over its labels that match.
func (r *rig) metric(name string, label ...string) float64 {
	r.t.Helper()
	families, err := r.reg.Gather()
	require.NoError(r.t, err)
	total := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if len(label) == 2 && (len(m.GetLabel()) == 0 || m.GetLabel()[0].GetValue() != label[1]) {
				continue
			}
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return total
}

// eventually waits for a condition that nothing signals.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, maxWait, 2*time.Millisecond, what)
}

// settled fails the test unless goroutines, descriptors and sockets return to what
// they were when it was called.
func (r *rig) settled() func() {
	r.t.Helper()
	goroutines, files := runtime.NumGoroutine(), descriptors(r.t)
	sockets := r.metric("waggle_gateway_connections")
	return func() {
		r.t.Helper()
		eventually(r.t, "the sockets are gone", func() bool { return r.metric("waggle_gateway_connections") <= sockets })
		// A few of the runtime's and of the HTTP client's may come and go.
		eventually(r.t, "the goroutines have returned", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
		eventually(r.t, "the descriptors have returned", func() bool { return descriptors(r.t) <= files+2 })
		eventually(r.t, "all queues are empty", func() bool { return r.metric("waggle_gateway_queue_bytes") == 0 })
	}
}

// descriptors counts the open sockets: the files of the NATS server come and go as
// it sees fit.
func descriptors(t testing.TB) int {
	t.Helper()
	const dir = "/proc/self/fd/"
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return 0 // not this system
	}
	require.NoError(t, err)
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink(dir + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
