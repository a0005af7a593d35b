package client

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
)

// comeback is the pause before a participant whose connection has ended connects
// again: short, so that tests are.
const comeback = 50 * time.Millisecond

// SwarmAgent is an agent that comes back whenever its connection ends, at each of its
// addresses in turn, as the same agent. It does one task at a time. It repeats the results
// of a connection that ended: no frame tells an agent that its result has arrived.
type SwarmAgent struct {
	t     testing.TB
	id    string
	name  string
	addrs []string
	work  func(SwarmFrame) any // does a task
	quit  chan struct{}
	done  sync.WaitGroup
	tasks chan SwarmFrame

	mu      sync.Mutex
	conn    *Swarm
	results map[string]any // by task
	unsure  []string       // tasks whose results may be lost
	given   []string       // tasks as they were given, again ones too
	refused map[string]int // errors by code
	losses  int
}

// RunAgent runs a worker until the test ends. It returns once the worker is registered.
func RunAgent(t testing.TB, agentID, name string, addrs []string, work func(SwarmFrame) any) *SwarmAgent {
	t.Helper()
	w := &SwarmAgent{
		t: t, id: agentID, name: name, addrs: addrs, work: work, quit: make(chan struct{}), tasks: make(chan SwarmFrame, 4096),
		results: map[string]any{}, refused: map[string]int{},
	}
	w.done.Go(func() { w.live() })
	w.done.Go(func() { w.toil() })
	t.Cleanup(func() {
		close(w.quit)
		w.mu.Lock()
		b := w.conn
		w.mu.Unlock()
		if b != nil {
			b.Drop()
		}
		w.done.Wait()
	})
	process.Eventually(t, agentID+" is registered", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.conn != nil && slices.Contains(w.conn.Types(), "agent.registered")
	})
	return w
}

func (w *SwarmAgent) live() {
	for i := 0; ; i++ {
		b, err := TrySwarm(w.t, SwarmOptions{Role: proof.RoleAgent, Addr: w.addrs[i%len(w.addrs)], Do: w.hear})
		if err == nil {
			w.connected(b)
			select {
			case <-b.Ended():
			case <-w.quit:
				b.Drop()
			}
		}
		select {
		case <-time.After(comeback):
		case <-w.quit:
			return
		}
	}
}

func (w *SwarmAgent) connected(b *Swarm) {
	_, _ = b.Tell("agent.register", map[string]any{"id": w.id, "name": w.name, "capabilities": []string{"work"}}) // an ended connection is seen by live
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		w.losses++
	}
	w.conn = b
	for _, task := range w.unsure {
		w.report(task)
	}
}

// report says a result. w.mu is held.
func (w *SwarmAgent) report(task string) {
	if w.conn != nil {
		_, _ = w.conn.Tell("agent.task.result", map[string]any{"taskId": task, "result": w.results[task]}) // said again if this connection ends
	}
}

func (w *SwarmAgent) hear(_ *Swarm, f SwarmFrame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch f.Type {
	case "error":
		w.refused[f.Text("code")]++
	case "task.execute":
		w.given = append(w.given, f.ID)
		if _, did := w.results[f.ID]; did {
			w.report(f.ID)
			return
		}
		w.tasks <- f
	}
}

func (w *SwarmAgent) toil() {
	for {
		select {
		case <-w.quit:
			return
		case f := <-w.tasks:
			result := w.work(f)
			w.mu.Lock()
			w.results[f.ID] = result
			w.unsure = append(w.unsure, f.ID)
			w.report(f.ID)
			w.mu.Unlock()
		}
	}
}

// Given returns the tasks that the worker was given, each once, how often one came
// again, what it was refused, and how often it lost its connection.
func (w *SwarmAgent) Given() (tasks []string, again int, refused map[string]int, losses int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tasks = slices.Clone(w.given)
	slices.Sort(tasks)
	tasks = slices.Compact(tasks)
	refused = map[string]int{}
	for code, n := range w.refused {
		refused[code] = n
	}
	return tasks, len(w.given) - len(tasks), refused, w.losses
}

// SwarmClient is a client that comes back as the same client whenever its connection ends,
// with the seq of the last event that it has.
type SwarmClient struct {
	t     testing.TB
	addrs []string
	id    string
	token string

	mu     sync.Mutex
	conn   *Swarm
	last   uint64
	events []string // frames of events as they came
	frames []SwarmFrame
	wrong  []error
	losses int
	quit   chan struct{}
	ended  chan struct{}
}

// RunClient runs a guest until the test ends.
func RunClient(t testing.TB, addrs []string, hear func(SwarmFrame)) *SwarmClient {
	t.Helper()
	g := &SwarmClient{t: t, addrs: addrs, quit: make(chan struct{}), ended: make(chan struct{})}
	g.conn = DialSwarm(t, SwarmOptions{Role: proof.RoleClient, Addr: addrs[0], Do: g.take(hear)})
	welcome := g.conn.Until("orchestrator.client.welcome")
	g.id, g.token = welcome.Text("clientId"), welcome.Text("resumeToken")
	go g.live(hear)
	t.Cleanup(func() {
		close(g.quit)
		<-g.ended
	})
	return g
}

// take keeps the frames of events, which have to come once and in order.
func (g *SwarmClient) take(hear func(SwarmFrame)) func(*Swarm, SwarmFrame) {
	return func(b *Swarm, f SwarmFrame) {
		if f.Seq == 0 {
			return
		}
		g.mu.Lock()
		if f.Seq <= g.last {
			g.wrong = append(g.wrong, fmt.Errorf("event %d after %d: %s", f.Seq, g.last, f.Content))
		}
		g.last = f.Seq
		all := b.Got()
		g.events, g.frames = append(g.events, all[len(all)-1]), append(g.frames, f)
		g.mu.Unlock()
		if hear != nil {
			hear(f)
		}
	}
}

func (g *SwarmClient) live(hear func(SwarmFrame)) {
	defer close(g.ended)
	for i := 1; ; i++ {
		g.mu.Lock()
		b := g.conn
		g.mu.Unlock()
		select {
		case <-g.quit:
			return
		case <-b.Ended():
		}
		select {
		case <-g.quit:
			return
		case <-time.After(comeback):
		}
		if next, err := TrySwarm(g.t, SwarmOptions{Role: proof.RoleClient, Addr: g.addrs[i%len(g.addrs)], Query: g.query(), Do: g.take(hear)}); err == nil {
			g.mu.Lock()
			g.conn, g.losses = next, g.losses+1
			g.mu.Unlock()
		}
	}
}

func (g *SwarmClient) query() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return url.Values{"clientId": {g.id}, "resumeToken": {g.token}, "after": {strconv.FormatUint(g.last, 10)}}.Encode()
}

// Tell sends a frame on the connection of the moment.
func (g *SwarmClient) Tell(kind string, content any) (string, error) {
	g.mu.Lock()
	b := g.conn
	g.mu.Unlock()
	return b.Tell(kind, content)
}

// Events returns the frames of events so far, as they came and read, how often the
// connection was lost, and what came twice or out of order.
func (g *SwarmClient) Events() (raw []string, frames []SwarmFrame, losses int, wrong error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.events), slices.Clone(g.frames), g.losses, errors.Join(g.wrong...)
}

// Replay connects once more as the same client, from the beginning, and returns the
// first n frames of events as they come.
func (g *SwarmClient) Replay(addr string, n int) []string {
	g.t.Helper()
	q := url.Values{"clientId": {g.id}, "resumeToken": {g.token}, "after": {"0"}}.Encode()
	b := DialSwarm(g.t, SwarmOptions{Role: proof.RoleClient, Addr: addr, Query: q})
	count := func() (out []string) {
		for i, f := range b.Frames() {
			if f.Seq > 0 {
				out = append(out, b.Got()[i])
			}
		}
		return out
	}
	process.Eventually(g.t, fmt.Sprintf("%d events come again", n), func() bool { return len(count()) >= n })
	return count()[:n]
}
