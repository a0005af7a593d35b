package attack_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/chaos/load"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/lab/attack"
	"github.com/waggle-dev/waggle/e2e/lab/attack/strangers"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

var (
	sockets = flag.Int("sockets", 1000, "connections without credentials")
	logins  = flag.Int("logins", 300, "bad logins per second")
	readers = flag.Int("readers", 20, "slow readers")
	length  = flag.Duration("length", 8*time.Second, "how long each half takes")
	bounds  = flag.Bool("bounds", false, "check times and memory, too: on a machine that does nothing else")
)

const (
	// order is the variable that makes this program the attacker: its own process, so that it takes no time of the
	// users' clients.
	order = "WAGGLE_E2E_ATTACK"
	// serving makes it a bare server at an address.
	serving = "WAGGLE_E2E_BARE"
	// mostMemory and slowest are the bounds of the gateway.
	mostMemory = 300 << 20
	slowest    = 1.5
)

func TestMain(m *testing.M) {
	if text := os.Getenv(order); text != "" {
		os.Exit(attackAs(text))
	}
	if addr := os.Getenv(serving); addr != "" {
		os.Exit(serveBare(addr))
	}
	flag.Parse()
	os.Exit(process.Audit(m.Run()))
}

// attackAs carries out an order, and prints what came of it.
func attackAs(text string) int {
	var a strangers.Attack
	err := json.Unmarshal([]byte(text), &a)
	if err == nil {
		var c strangers.Count
		if c, err = strangers.Run(context.Background(), a); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(c)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serveBare serves strangers until the test ends it.
func serveBare(addr string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := strangers.Bare(ctx, addr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func keyOf(name string) string { return process.Canary + "-key-of-" + name }

// installation is everything in one process, and a gateway of its own, which is attacked.
type installation struct {
	t       *testing.T
	dir     string
	gateway *process.Process
	addr    string
}

func start(t *testing.T) *installation {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "waggle.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
auth:
  api_keys:
    - {id: users, sha256: %s, tenant: default}
    - {id: slow, sha256: %s, tenant: default, roles: [operator]}
    - {id: slower, sha256: %s, tenant: default, roles: [operator]}
gateway: {trusted_proxies: [127.0.0.0/8]}
`, auth.HashKey(keyOf("users")), auth.HashKey(keyOf("slow")), auth.HashKey(keyOf("slower"))), 0o600))
	rest, bus := freeport.Addr(t), freeport.Addr(t)
	all := process.Start(t, process.Options{Name: "up", Dir: dir, Args: []string{
		"up", "--config", config, "--addr", rest, "--nats-addr", bus, "--data", filepath.Join(dir, "data"), "--workspace", filepath.Join(dir, "workspace"),
	}})
	all.Ready(rest)
	i := &installation{t: t, dir: dir, addr: freeport.Addr(t)}
	i.gateway = process.Start(t, process.Options{Name: "gateway", Dir: dir, Args: []string{
		"serve", "--role", "gateway", "--config", config, "--addr", i.addr, "--nats", "nats://" + bus, "--data", filepath.Join(dir, "data"),
	}})
	i.gateway.Ready(i.addr)
	t.Setenv("WAGGLE_NATS", "nats://"+bus)
	return i
}

// long makes a session of the principal with much to read, and returns its path.
func (i *installation) long(key string) string {
	i.t.Helper()
	ctx, cancel := process.Within(process.MaxWait)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+i.addr+"/ws", &websocket.DialOptions{ //nolint:bodyclose // closed by the library
		HTTPHeader: http.Header{"Authorization": {"Bearer " + key}},
	})
	require.NoError(i.t, err)
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(8 << 20)
	session, answered := "", 0
	for answered < 13 {
		_, b, err := conn.Read(ctx)
		require.NoError(i.t, err)
		var f struct {
			Type string `json:"type"`
			Data struct {
				SessionID string `json:"session_id"`
			} `json:"data"`
		}
		require.NoError(i.t, json.Unmarshal(b, &f))
		switch f.Type {
		case "agent_response":
			answered++
		case "agent_ready":
			session = f.Data.SessionID
		case "error":
			require.Fail(i.t, "the page is not made", string(b))
		default:
			continue
		}
		require.NoError(i.t, wsjson.Write(ctx, conn, map[string]string{"type": "user_message", "content": strings.Repeat("long ", 30_000)}))
	}
	return "/api/v1/sessions/" + session
}

// records counts the audit records of the users' messages, and those about lost records.
func (i *installation) records() (commands, lost int) {
	i.t.Helper()
	for _, action := range []id.Name{audit.Command, audit.Lost} {
		p := process.Start(i.t, process.Options{Name: "audit", Quiet: true, Dir: i.dir, Args: []string{
			"audit", "--json", "--action", action.String(), "--nats", os.Getenv("WAGGLE_NATS"), "--data", filepath.Join(i.dir, "data"),
		}})
		require.NoError(i.t, p.Wait(), p.Output())
		for lines := bufio.NewScanner(strings.NewReader(p.Output())); lines.Scan(); {
			switch {
			case action == audit.Lost:
				lost++
			case strings.Contains(lines.Text(), `"users"`) && strings.Contains(lines.Text(), "send_message"):
				commands++
			}
		}
	}
	return commands, lost
}

// attacker starts the strangers, at the lowest priority: their own work is not what is measured.
func (i *installation) attacker(a strangers.Attack) *process.Process {
	i.t.Helper()
	text, err := json.Marshal(a)
	require.NoError(i.t, err)
	self, err := os.Executable()
	require.NoError(i.t, err)
	return process.Start(i.t, process.Options{
		Name: "strangers", Program: self, Wrap: []string{"nice", "-n", "19"}, Env: []string{order + "=" + string(text)},
	})
}

// compared returns how long answers take while the same strangers attack a bare server on this machine, and the gateway has
// users only. It sends no readers: that server has nothing to read.
func (i *installation) compared(ctx context.Context, users attack.Chats, a strangers.Attack) (attack.Times, strangers.Count) {
	i.t.Helper()
	self, err := os.Executable()
	require.NoError(i.t, err)
	a.Addr, a.Readers = freeport.Addr(i.t), 0
	bare := process.Start(i.t, process.Options{Name: "bare server", Program: self, Env: []string{serving + "=" + a.Addr}})
	process.Eventually(i.t, "the bare server listens", func() bool {
		conn, err := net.Dial("tcp", a.Addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	strangersAt := i.attacker(a)
	times, err := users.Run(ctx, a.Time)
	require.NoError(i.t, err)
	require.NoError(i.t, strangersAt.Wait())
	require.NoError(i.t, bare.Terminate())
	return times, i.countOf(strangersAt)
}

// countOf returns what the strangers say that they did.
func (i *installation) countOf(p *process.Process) (c strangers.Count) {
	i.t.Helper()
	require.NoError(i.t, json.Unmarshal([]byte(p.Output()), &c), p.Output())
	return c
}

// watch looks at readiness and memory of the gateway until the function that it returns is called.
func (i *installation) watch() (end func() (unready int64, most int)) {
	ctx, cancel := context.WithCancel(i.t.Context())
	var unready atomic.Int64
	var most atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for process.Rest(ctx, 250*time.Millisecond) == nil {
			if !process.Up(i.addr) {
				unready.Add(1)
			}
			if n, err := i.gateway.Memory(); err == nil {
				most.Store(max(most.Load(), int64(n)))
			}
		}
	}()
	return func() (int64, int) {
		cancel()
		<-done
		return unready.Load(), int(most.Load())
	}
}

// TestUsersDoNotNoticeStrangers: users chat while others keep silent sockets, guess keys and hardly read. All users get
// all answers, the gateway stays ready, and no audit record of the users is lost.
//
// With -bounds, it compares how long answers take with the quiet times, and with a minute in which the strangers attack a
// bare server on the same machine: they take processors from all, wherever they send.
func TestUsersDoNotNoticeStrangers(t *testing.T) {
	require.NoError(t, load.RaiseFiles(*sockets+*readers))
	i := start(t)
	users := attack.Chats{Addr: i.addr, Key: keyOf("users"), Users: 10, Pause: 250 * time.Millisecond}
	session := i.long(keyOf("slow"))
	ctx, cancel := process.Within(3**length + 3*process.MaxWait)
	defer cancel()
	quiet, err := users.Run(ctx, *length/2) // the other half comes after the attack
	require.NoError(t, err)

	promised := strangers.Attack{
		Addr: i.addr, Sockets: *sockets, Logins: *logins, Readers: *readers, Keys: []string{keyOf("slow"), keyOf("slower")},
		Log: session + "/stream", Page: session + "/events?limit=1000", Time: *length + 5*time.Second,
	}
	if !*bounds { // the machine has other work: the load comes, but not at its rate
		promised.Longer = process.MaxWait
	}
	strangersAt := i.attacker(promised)
	end := i.watch()
	attacked, err := users.Run(ctx, *length+5*time.Second)
	require.NoError(t, err)
	require.NoError(t, strangersAt.Wait())
	unready, memory := end()
	after, err := users.Run(ctx, *length/2)
	require.NoError(t, err)
	quiet = append(quiet, after...)
	slices.Sort(quiet)
	came := i.countOf(strangersAt)
	t.Logf("strangers: %+v", came)
	t.Logf("quiet:     %v", quiet)
	ratio := float64(attacked.Quantile(0.99)) / float64(quiet.Quantile(0.99))
	t.Logf("attacked:  %v, %.2f times; gateway %d MiB", attacked, ratio, memory>>20)
	require.Zero(t, unready, "the gateway was not ready")
	require.Empty(t, promised.Short(came), "the attack has to be as heavy as it says: %+v", came)
	require.Positive(t, came.Pages)
	answers := len(quiet) + len(attacked)
	if *bounds {
		elsewhere, came := i.compared(ctx, users, promised)
		ofBare := float64(attacked.Quantile(0.99)) / float64(elsewhere.Quantile(0.99))
		t.Logf("strangers: %+v", came)
		t.Logf("elsewhere: %v; attacked: %.2f times", elsewhere, ofBare)
		require.Less(t, memory, mostMemory)
		require.Less(t, ofBare, slowest)
		answers += len(elsewhere)
	}
	process.Eventually(t, "each message of the users has its audit record", func() bool {
		commands, _ := i.records()
		return commands == answers
	})
	_, lost := i.records()
	require.Zero(t, lost, "audit records were lost")
	if *bounds {
		require.Less(t, ratio, slowest)
	}
}
