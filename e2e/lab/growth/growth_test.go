package growth_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/lab/growth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

var (
	sessions = flag.String("sessions", "20,200", "numbers of sessions, ascending")
	events   = flag.String("events", "100,1000", "events of long sessions, ascending")
	each     = flag.Int("each", 10, "events of each of the many sessions")
	repeat   = flag.Int("repeat", 5, "repetitions of what is timed; the median counts")
	pageFile = flag.String("page", "", "file that gets the tables as a page, if all tests pass; empty: none")
	madeBy   = flag.String("command", "", "command that the page names")
	remark   = flag.String("remark", "", "remark of the page about the machine")
)

var page = &growth.Page{}

func TestMain(m *testing.M) {
	flag.Parse()
	page.Command, page.Remark = *madeBy, *remark
	code := process.Audit(m.Run())
	if code == 0 && *pageFile != "" {
		if err := os.WriteFile(*pageFile, []byte(page.String()), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// installation is everything in one process, which can be stopped and started again.
type installation struct {
	t         *testing.T
	dir       string
	addr, bus string
	up        *process.Process
	started   time.Duration
	settings  []string // of its environment
	opened    int      // sessions that the test opened by its questions
}

func (i *installation) start() {
	i.t.Helper()
	began := time.Now()
	i.up = process.Start(i.t, process.Options{Name: "up", Dir: i.dir, Env: append([]string{ // growth goes beyond the shipped quotas
		"WAGGLE_QUOTA_TENANT_SESSIONS=-1", "WAGGLE_QUOTA_PRINCIPAL_SESSIONS=-1", "WAGGLE_QUOTA_TENANT_TOKENS=-1", "WAGGLE_QUOTA_PRINCIPAL_TOKENS=-1",
	}, i.settings...), Args: []string{
		"up", "--addr", i.addr, "--nats-addr", i.bus, "--telemetry-addr", "off", "--data", i.data(), "--workspace", filepath.Join(i.dir, "workspace"), "--model", "demo",
	}})
	i.up.Ready(i.addr)
	i.started = time.Since(began)
}

func (i *installation) data() string { return filepath.Join(i.dir, "data") }

func (i *installation) stop() { require.NoError(i.t, i.up.Terminate()) }

func (i *installation) socket(query string) string { return "ws://" + i.addr + "/ws" + query }

// memory returns the resident MiB of the process.
func (i *installation) memory() int {
	n, err := i.up.Memory()
	require.NoError(i.t, err)
	return n >> 20
}

// stored returns the MiB of the data folder.
func (i *installation) stored() int64 { return i.bytes() >> 20 }

// filled hands the logs of the running installation to the function, with what a real session of it wrote.
func (i *installation) filled(fill func(ctx context.Context, s *eventlog.Store, t *growth.Template) error) {
	i.t.Helper()
	i.opened++
	c := client.DialOrbit(i.t, i.socket(""))
	c.Until("agent_ready")
	c.Ask("hello")
	c.Until("agent_response")
	c.Close()
	conn := i.connect()
	defer conn.Close()
	s, err := eventlog.New(conn, eventlog.Options{})
	require.NoError(i.t, err)
	defer s.Close()
	template, err := growth.Learn(i.t.Context(), s, c.Session)
	require.NoError(i.t, err)
	require.NoError(i.t, fill(i.t.Context(), s, template))
}

// connect returns a connection to the bus with the key of the session service.
func (i *installation) connect() *bus.Conn { return i.connectAs("session") }

func (i *installation) connectAs(role permission.Role) *bus.Conn {
	i.t.Helper()
	conn, err := bus.Connect(i.t.Context(), bus.Config{URL: "nats://" + i.bus, NKeySeedFile: filepath.Join(i.data(), "nats-keys", string(role)+".nk"), InboxPrefix: permission.Inbox(role)})
	require.NoError(i.t, err)
	return conn
}

// answer returns how long the next question in a session takes until the first frame of its answer; empty = a new session.
func (i *installation) answer(session string) time.Duration {
	i.t.Helper()
	query := ""
	if session != "" {
		query = "?session=" + session
	} else {
		i.opened++
	}
	c := client.DialOrbit(i.t, i.socket(query))
	defer c.Close()
	c.Until("agent_ready")
	began := time.Now()
	c.Ask("hello")
	c.Until("agent_response")
	return time.Since(began)
}

// resume returns how long a client that missed the last ten events of a session waits for the first of them.
func (i *installation) resume(session string, last uint64) time.Duration {
	i.t.Helper()
	began := time.Now()
	c := client.DialOrbit(i.t, i.socket(fmt.Sprintf("?session=%s&after=%d", session, last-10)))
	defer c.Close()
	for {
		f, err := c.Next()
		require.NoError(i.t, err)
		if f.Seq > 0 {
			return time.Since(began)
		}
	}
}

// total returns the number of sessions that the list knows.
func (i *installation) total() int {
	i.t.Helper()
	var page struct {
		Total int `json:"total"`
	}
	require.NoError(i.t, json.Unmarshal([]byte(process.Get(i.t, "http://"+i.addr+"/api/v1/sessions?limit=1").Body), &page))
	return page.Total
}

// median returns the middle of what the function returns.
func median(n int, f func() time.Duration) time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = f()
	}
	slices.Sort(out)
	return out[n/2]
}

// install starts a new installation with settings in its environment.
func install(t *testing.T, settings ...string) *installation {
	t.Helper()
	i := &installation{t: t, settings: settings, dir: t.TempDir(), addr: freeport.Addr(t), bus: freeport.Addr(t)}
	i.start()
	return i
}

func sizes(t *testing.T, text string) (out []int) {
	t.Helper()
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		require.NoError(t, err)
		out = append(out, n)
	}
	require.True(t, slices.IsSorted(out), "ascending")
	return out
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// TestSessions prints what an installation with many sessions costs: its start, its memory, a page of the list right after the
// start and at rest, the processor time of an idle installation, and what people do with it.
func TestSessions(t *testing.T) {
	i, have := install(t), 0
	table := growth.NewTable("sessions", "written a second", "disk MiB", "start ms", "memory MiB", "page at the start ms", "idle cpu %", "page ms", "page KB", "memory after pages MiB")
	work := growth.NewTable("sessions", "new session's answer ms", "return ms", "answer after a kill -9 ms", "doctor ms", "backup s", "backup MiB")
	for _, n := range sizes(t, *sessions) {
		names := make([]string, 0, n-have)
		for ; have < n; have++ {
			names = append(names, fmt.Sprint("grown-", have))
		}
		began := time.Now()
		i.filled(func(ctx context.Context, s *eventlog.Store, tpl *growth.Template) error {
			return tpl.Fill(ctx, s, names, *each)
		})
		rate := float64(len(names)) / time.Since(began).Seconds()
		i.stop()
		i.start()
		require.Eventually(t, func() bool { // the index follows the logs in the background
			return i.total() == n+i.opened
		}, 10*time.Minute, 50*time.Millisecond)
		memory := i.memory()
		early, _ := i.page() // beside what a start has to do
		idle := i.idle()     // rests first
		page, bytes := i.page()
		table.Add(n, rate, float64(i.stored()), ms(i.started), float64(memory), ms(early), idle*100, ms(page), float64(bytes)/1000, float64(i.memory()))
		i.serves(work, n)
	}
	shown(t, "Sessions", "Many short sessions: what is stored, a start with them, and the first page of the list, right after the start and at rest.", table)
	shown(t, "Work with many sessions", "The first answer of a new session, the return of a client to an old one, the time from a kill -9 to the first answer after a new start, and two commands of operators.", work)
}

// serves measures what people do in an installation of n sessions.
func (i *installation) serves(table *growth.Table, n int) {
	i.t.Helper()
	answer := median(*repeat, func() time.Duration { return i.answer("") })
	back := median(*repeat, func() time.Duration { return i.resume("grown-0", uint64(max(*each, 10))) })
	began := time.Now()
	i.up.Kill()
	i.start()
	i.answer("")
	killed := time.Since(began)
	doctor := i.timed("doctor", "--addr", i.addr)
	backup := filepath.Join(i.t.TempDir(), "backup")
	saved := i.timed("backup", "--out", backup)
	table.Add(n, ms(answer), ms(back), ms(killed), ms(doctor), saved.Seconds(), float64(bytesBelow(i.t, backup)>>20))
	require.NoError(i.t, os.RemoveAll(backup))
}

// timed returns how long a command of an operator takes.
func (i *installation) timed(command string, args ...string) time.Duration {
	i.t.Helper()
	began := time.Now()
	p := process.Start(i.t, process.Options{Name: command, Dir: i.dir, Args: append([]string{command, "--nats", "nats://" + i.bus, "--data", i.data()}, args...)})
	<-p.Ended() // a backup takes as long as it takes
	took := time.Since(began)
	require.NoError(i.t, p.Wait(), p.Output())
	return took
}

// page returns how long the first page of the list of sessions takes, and its bytes.
func (i *installation) page() (took time.Duration, bytes int) {
	i.t.Helper()
	took = median(*repeat, func() time.Duration {
		began := time.Now()
		a := process.Get(i.t, "http://"+i.addr+"/api/v1/sessions")
		require.Equal(i.t, 200, a.Status, a.Body)
		require.Contains(i.t, a.Body, `"session_id"`)
		bytes = len(a.Body)
		return time.Since(began)
	})
	return took, bytes
}

// shown prints a table and adds it to the page.
func shown(t *testing.T, title, about string, table *growth.Table) {
	t.Helper()
	t.Logf("\n%s", table)
	page.Add(title, about, table)
}

// TestLongSessions prints what a session costs as it grows: the first answer of all, which no snapshot helps, the first answer
// after a restart and its processor time, the next answer, and the return of a client that missed ten events. The first row is
// a session that has one answer.
func TestLongSessions(t *testing.T) {
	i := install(t)
	table := growth.NewTable("events", "answer without snapshot ms", "first answer after a restart ms", "its processor time ms", "next answer ms", "return ms", "return after a restart ms", "memory MiB")
	for _, n := range append([]int{*each}, sizes(t, *events)...) {
		name := fmt.Sprint("long-", n)
		i.filled(func(ctx context.Context, s *eventlog.Store, tpl *growth.Template) error {
			return tpl.Fill(ctx, s, []string{name}, n)
		})
		last := uint64(n)
		i.stop()
		i.start()
		whole := i.answer(name)
		i.stop()
		i.start()
		cold := i.resume(name, last)
		warm := median(*repeat, func() time.Duration { return i.resume(name, last) })
		before := i.busy()
		first := i.answer(name)
		busy := i.busy() - before
		next := median(*repeat, func() time.Duration { return i.answer(name) })
		table.Add(n, ms(whole), ms(first), ms(busy), ms(next), ms(warm), ms(cold), float64(i.memory()))
	}
	shown(t, "Long sessions", "One session with many events, which a client continues, and to which a client returns that missed ten events.", table)
}
