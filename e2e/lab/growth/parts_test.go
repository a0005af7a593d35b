package growth_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/lab/growth"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

var (
	copies  = flag.Int("copies", 1, "NATS servers, and copies of each stream")
	pieces  = flag.Int("pieces", 20, "pieces of a streamed answer")
	every   = flag.Duration("every", 20*time.Millisecond, "time between two pieces")
	talkers = flag.Int("talkers", 4, "chats that ask the installation of separate processes at once")
	shorts  = flag.Int("shorts", 5, "answers of one piece that each of these chats gets")
	longs   = flag.Int("longs", 1, "streamed answers that each of these chats gets")
)

// parts is an installation of separate processes, so that each part's processor time shows.
type parts struct {
	t         *testing.T
	dir, addr string
	gateway   *process.Process
	services  *process.Process
	worker    *process.Process
	servers   []*process.Process
	llm       *scripted.Server
}

const serverConf = `
server_name: nats-%d
listen: %q
http: %q
max_payload: 1MB
jetstream { store_dir: %q, sync_interval: "1s" }
`

// natsServer builds the NATS server. WAGGLE_E2E_NATS names one that is built already.
func natsServer(t *testing.T, dir string) string {
	t.Helper()
	if path := os.Getenv("WAGGLE_E2E_NATS"); path != "" {
		return path
	}
	path := filepath.Join(dir, "nats-server")
	out, err := exec.Command("go", "build", "-o", path, "github.com/waggle-dev/waggle/cmd/nats-server").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// startServers starts the NATS servers and returns their addresses.
func (p *parts) startServers() string {
	p.t.Helper()
	binary := natsServer(p.t, p.dir)
	urls, routes, listens, probes := make([]string, *copies), make([]string, *copies), make([]string, *copies), make([]string, *copies)
	for n := range *copies {
		urls[n], listens[n], probes[n] = freeport.Addr(p.t), freeport.Addr(p.t), freeport.Addr(p.t)
		routes[n] = fmt.Sprintf("%q", "nats-route://"+listens[n])
	}
	for n := range *copies {
		text := fmt.Sprintf(serverConf, n, urls[n], probes[n], p.store(n))
		if *copies > 1 {
			text += fmt.Sprintf("cluster { name: parts, listen: %q, routes: [ %s ] }\n", listens[n], strings.Join(routes, ", "))
		}
		file := filepath.Join(p.dir, fmt.Sprintf("nats-%d.conf", n))
		require.NoError(p.t, os.WriteFile(file, []byte(text), 0o600))
		p.servers = append(p.servers, process.Start(p.t, process.Options{Name: fmt.Sprint("nats-", n), Dir: p.dir, Program: binary, Args: []string{"-c", file}, Quiet: true}))
		urls[n] = "nats://" + urls[n]
	}
	for _, probe := range probes {
		process.Eventually(p.t, "the NATS server is well", func() bool {
			a, err := http.Get("http://" + probe + "/healthz")
			if err != nil {
				return false
			}
			_ = a.Body.Close()
			return a.StatusCode == http.StatusOK
		})
	}
	return strings.Join(urls, ",")
}

func (p *parts) store(n int) string { return filepath.Join(p.dir, fmt.Sprint("store-", n)) }

// newParts starts the processes. The model answers "long" with many pieces, at the pace of a language model, and all else with one.
func newParts(t *testing.T) *parts {
	t.Helper()
	p := &parts{t: t, dir: t.TempDir(), addr: freeport.Addr(t)}
	text := scripted.Words(strings.TrimSpace(strings.Repeat("token ", *pieces)))
	var err error
	p.llm, err = scripted.Start("127.0.0.1:0", func(x *scripted.Exchange) scripted.Reply {
		if m := x.Prompt.Messages; len(m) > 0 && strings.HasPrefix(m[len(m)-1].Content, "long") {
			return scripted.Stream(scripted.Every(*every, text...), scripted.Usage(7, int64(*pieces)))
		}
		return scripted.Stream(scripted.Text("5"), scripted.Usage(7, 1))
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.llm.Close() })
	signing := filepath.Join(p.dir, "keys")
	_, err = keys.EnsureSigning(signing)
	require.NoError(t, err)
	config := filepath.Join(p.dir, "waggle.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
model: openai:scripted
nats: {replicas: %d}
gateway: {message_rate: 100000}
quota: {tenant: {sessions: -1, tokens: -1}, principal: {sessions: -1, tokens: -1}}
`, *copies), 0o600))
	urls := p.startServers()
	serve := func(roles, addr string) *process.Process {
		return process.Start(t, process.Options{
			Name: roles,
			Env: []string{
				"WAGGLE_SIGNING_KEY_FILE=" + keys.SigningFile(signing), "WAGGLE_SIGNING_PUBLIC_KEY_FILE=" + keys.SigningPublicFile(signing),
				"OPENAI_BASE_URL=" + p.llm.OpenAIBaseURL(), "OPENAI_API_KEY=" + process.Canary,
			},
			Args: []string{"serve", "--role", roles, "--nats", urls, "--config", config, "--addr", addr, "--telemetry-addr", "off", "--workspace", p.dir},
		})
	}
	p.services, p.worker, p.gateway = serve("session,pipeline,task,team,tools", freeport.Addr(t)), serve("worker", freeport.Addr(t)), serve("gateway", p.addr)
	p.gateway.Ready(p.addr)
	return p
}

// cost is what answers took of each part, in seconds, and what they wrote and sent.
type cost struct {
	gateway, services, worker, nats float64
	stored                          int64 // on all NATS servers
	sent                            int   // to clients
	answers                         int
}

func (p *parts) now() cost {
	p.t.Helper()
	busy := func(all ...*process.Process) (sum float64) {
		for _, one := range all {
			d, err := one.Busy()
			require.NoError(p.t, err)
			sum += d.Seconds()
		}
		return sum
	}
	c := cost{gateway: busy(p.gateway), services: busy(p.services), worker: busy(p.worker), nats: busy(p.servers...)}
	for n := range p.servers {
		c.stored += bytesBelow(p.t, p.store(n))
	}
	return c
}

func (c cost) minus(d cost, times float64) cost {
	return cost{
		c.gateway - d.gateway*times, c.services - d.services*times, c.worker - d.worker*times, c.nats - d.nats*times,
		c.stored - int64(float64(d.stored)*times), c.sent, c.answers,
	}
}

// ask lets each chat ask the question so often, one answer after the other, and returns what that cost beside a rest of the
// same length.
func (p *parts) ask(question string, times int) cost {
	p.t.Helper()
	<-time.After(*quiet)
	first, began := p.now(), time.Now()
	<-time.After(*quiet)
	rest, before := time.Since(began), p.now()
	idle := before.minus(first, 1)
	idle.stored = 0
	share := func(busy float64) float64 { return 100 * busy / rest.Seconds() }
	p.t.Logf("at rest for %.0f s, of a core: gateway %.2f %%, services %.2f %%, worker %.2f %%, each NATS server %.2f %%",
		rest.Seconds(), share(idle.gateway), share(idle.services), share(idle.worker), share(idle.nats)/float64(*copies))
	var all sync.WaitGroup
	sent, errs := make([]int, *talkers), make([]error, *talkers)
	began = time.Now()
	for n := range *talkers {
		all.Go(func() { sent[n], errs[n] = p.chat(question, times) })
	}
	all.Wait()
	took := time.Since(began)
	<-time.After(*quiet) // the work after an answer, the last write to the disk included
	out := p.now().minus(before, 1).minus(idle, (took+*quiet).Seconds()/rest.Seconds())
	for n := range sent {
		require.NoError(p.t, errs[n])
		out.sent += sent[n]
	}
	out.answers = *talkers * times
	return out
}

// chat returns the bytes of the frames that the chat got.
func (p *parts) chat(question string, times int) (int, error) {
	c, err := client.TryOrbit(p.t, "ws://"+p.addr+"/ws?deltas=true")
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.ReadTo("agent_ready", 1); err != nil {
		return 0, err
	}
	for range times {
		c.Ask(question)
		if err := c.ReadTo("agent_response", 1); err != nil {
			return 0, err
		}
	}
	sum := 0
	for _, f := range c.Frames {
		sum += len(f.Raw)
	}
	return sum, nil
}

// TestParts prints what an answer costs each part: an answer of one piece, and a streamed one. Their difference, divided by the
// pieces, is the cost of a streamed piece.
func TestParts(t *testing.T) {
	p := newParts(t)
	p.ask("short", 2) // caches and pools fill
	table := growth.NewTable("pieces", "answers", "gateway cpu us", "services cpu us", "worker cpu us", "NATS cpu us", "bytes stored", "bytes sent")
	for _, round := range []struct {
		question string
		times    int
		pieces   int
	}{{"short", *shorts, 1}, {"long", *longs, *pieces}} {
		c := p.ask(round.question, round.times)
		n := float64(c.answers)
		table.Add(round.pieces, n, c.gateway*1e6/n, c.services*1e6/n, c.worker*1e6/n, c.nats*1e6/n, float64(c.stored)/n, float64(c.sent)/n)
	}
	t.Logf("%d NATS servers\n%s", *copies, table)
}
