//go:build nightly

package e2e_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

const (
	sdkCuts  = 1000
	sdkKills = 10
)

// TestClientsOutliveAThousandCuts: a client of each SDK talks to two gateways over lines that are cut, while the gateways are killed in
// turn. Each message counts once, and the client is shown each event once and in order.
func TestClientsOutliveAThousandCuts(t *testing.T) {
	for name, start := range map[string]func(*testing.T, string, []string) speaker{"go": goSpeaker, "python": pythonSpeaker, "typescript": nodeSpeaker} {
		t.Run(name, func(t *testing.T) {
			words := scripted.Words(strings.Repeat("and so on ", 40))
			f := newFleet(t, scripted.Always(scripted.Stream(scripted.Every(20*time.Millisecond, words...))))
			f.serve("session,pipeline,task,tools,team,worker")
			c := &cutting{t: t, fleet: f}
			for range 2 {
				gate, addr := f.gateway()
				c.gates, c.addrs = append(c.gates, gate), append(c.addrs, addr)
				c.lines = append(c.lines, newCutLine(t, addr))
			}
			session := "cuts-" + name
			c.speaker = start(t, session, []string{c.lines[0].url(), c.lines[1].url()})
			c.run()
			c.judge(session)
		})
	}
}

// speaker is a program that shows a session and sends it messages: speaker.py and speaker.mjs say what goes in and out.
type speaker struct {
	in  io.WriteCloser
	out io.Reader
}

func pythonSpeaker(t *testing.T, session string, urls []string) speaker {
	root := filepath.Join("..", "sdk", "python")
	python := cmp.Or(os.Getenv("PYTHON"), "/usr/bin/python3") // as in the Makefile: the one with Debian's packages
	return programSpeaker(t, exec.CommandContext(t.Context(), python, append([]string{filepath.Join(root, "tests", "workers", "speaker.py"), session}, urls...)...),
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+filepath.Join(root, "src"))
}

func nodeSpeaker(t *testing.T, session string, urls []string) speaker {
	return programSpeaker(t, exec.CommandContext(t.Context(), "node", append([]string{filepath.Join("..", "sdk", "typescript", "testing", "speaker.mjs"), session}, urls...)...))
}

func programSpeaker(t *testing.T, c *exec.Cmd, env ...string) speaker {
	t.Helper()
	var errs bytes.Buffer
	c.Env, c.Stderr = append(os.Environ(), env...), &errs
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed, or has ended
		if t.Failed() {
			t.Logf("%s: %s", c.Path, errs.String())
		}
	})
	return speaker{in, out}
}

// goSpeaker does in this process what the other programs do.
func goSpeaker(t *testing.T, session string, urls []string) speaker {
	in, toIt := io.Pipe()
	fromIt, out := io.Pipe()
	turn := 0
	w, err := waggle.Open(t.Context(), urls[0], waggle.Options{
		MinBackoff: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond,
		Next: sync.OnceValue(func() func() string {
			var mu sync.Mutex
			return func() string {
				mu.Lock()
				defer mu.Unlock()
				turn++
				return urls[turn%len(urls)]
			}
		})(),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	g := &goProgram{ctx: ctx, client: w, session: session, out: json.NewEncoder(out)}
	var work sync.WaitGroup
	work.Go(func() { _ = out.CloseWithError(g.speak(in)) })
	t.Cleanup(func() {
		stop()
		_ = in.Close()
		_ = fromIt.Close()
		work.Wait()
	})
	return speaker{toIt, fromIt}
}

type goProgram struct {
	ctx     context.Context
	client  *waggle.Client
	session string

	mu  sync.Mutex
	out *json.Encoder
}

func (g *goProgram) tell(of any) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.out.Encode(of)
}

func (g *goProgram) speak(in io.Reader) error {
	ctx, stop := context.WithCancel(g.ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	read := sync.OnceFunc(func() {
		work.Go(func() {
			for e, err := range g.client.Log(id.KindSession, g.session).Events(ctx, waggle.ReadOptions{}) {
				if err != nil || g.tell(told{Event: e, First: e.From}) != nil {
					return
				}
			}
		})
	})
	for lines := bufio.NewScanner(in); lines.Scan(); {
		run, err := g.client.Send(ctx, g.session, api.NewMessage{Content: lines.Text(), CreateSession: true})
		if err != nil {
			return err
		}
		read()
		if _, err := run.Result(ctx); err != nil {
			return err
		}
		if err := g.tell(told{Answered: lines.Text()}); err != nil {
			return err
		}
	}
	return nil
}

// cutting cuts the lines of a speaker and kills its gateways.
type cutting struct {
	t       *testing.T
	fleet   *fleet
	gates   []*process.Process
	addrs   []string
	lines   []*cutLine
	speaker speaker

	news     chan told
	seen     account
	sent     int
	answered int
	cuts     int
	kills    int
}

// told is a line of a speaker.
type told struct {
	event.Event
	First    uint64 `json:"from,omitempty"` // of a merged event
	Answered string `json:"answered,omitempty"`
}

func (c *cutting) run() {
	c.news = make(chan told)
	var work sync.WaitGroup
	work.Go(func() {
		defer close(c.news)
		lines := bufio.NewScanner(c.speaker.out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var n told
			if json.Unmarshal(lines.Bytes(), &n) != nil {
				return
			}
			n.From = n.First
			select {
			case c.news <- n:
			case <-c.t.Context().Done():
				return
			}
		}
	})
	c.t.Cleanup(work.Wait)
	c.say()
	for c.cuts < sdkCuts {
		if c.kills < sdkKills && c.cuts >= (c.kills+1)*sdkCuts/(sdkKills+1) {
			c.kill()
		}
		for range 1 + c.cuts%5 { // each line has carried something when it is cut
			c.take(true)
		}
		for _, l := range c.lines {
			c.cuts += l.cut()
		}
	}
	for c.answered < c.sent {
		c.take(false)
	}
	require.NoError(c.t, c.speaker.in.Close())
}

// say sends the next message.
func (c *cutting) say() {
	c.sent++
	_, err := fmt.Fprintf(c.speaker.in, "message %d\n", c.sent)
	require.NoError(c.t, err)
}

// take takes a line of the speaker.
func (c *cutting) take(more bool) {
	n := c.next()
	if n.Answered == "" {
		c.seen.take(n.Event)
		return
	}
	if c.answered++; more {
		c.say()
	}
}

// next waits for the next line of the speaker.
func (c *cutting) next() told {
	c.t.Helper()
	select {
	case n, ok := <-c.news:
		require.True(c.t, ok, "the program has ended")
		return n
	case <-time.After(process.MaxWait):
		require.Fail(c.t, "the program says nothing")
		return told{}
	}
}

// kill kills one gateway, and starts it again.
func (c *cutting) kill() {
	i := c.kills % len(c.gates)
	c.kills++
	c.gates[i].Kill()
	c.gates[i] = c.fleet.serve("gateway", "--addr", c.addrs[i])
}

// judge compares what the client was shown with the log.
func (c *cutting) judge(session string) {
	for i, g := range c.gates {
		g.Ready(c.addrs[i])
	}
	w, err := waggle.Open(c.t.Context(), "http://"+c.addrs[0], waggle.Options{})
	require.NoError(c.t, err)
	log := w.Log(id.KindSession, session)
	head, err := log.Head(c.t.Context())
	require.NoError(c.t, err)
	for c.seen.last < head.Last { // those after the last answer
		c.seen.take(c.next().Event)
	}
	var whole account
	for e, err := range log.Events(c.t.Context(), waggle.ReadOptions{}) {
		require.NoError(c.t, err)
		if whole.take(e); e.Sequence >= head.Last {
			break
		}
	}
	received := 0
	for _, e := range whole.events {
		if e.Type == event.MessageReceived {
			received++
		}
	}
	lost := c.seen.lacks(whole)
	c.t.Logf("%d lines cut, %d kills -9 of two gateways, %d messages, %d in the log, %d events: %d lost, %d doubled, %d reordered",
		c.cuts, c.kills, c.sent, received, whole.last, lost, c.seen.doubled, c.seen.reordered)
	require.Equal(c.t, []int{0, 0, 0}, []int{lost, c.seen.doubled, c.seen.reordered})
	require.Equal(c.t, c.sent, received)
	require.Equal(c.t, sdkKills, c.kills)
}

// account is what a client has been shown: events, and the text of each message, whose pieces a gateway may join.
type account struct {
	events             map[uint64]event.Event
	texts              map[string]string
	last               uint64
	doubled, reordered int
}

func (a *account) take(e event.Event) {
	if a.events == nil {
		a.events, a.texts = map[uint64]event.Event{}, map[string]string{}
	}
	from := e.Sequence
	if e.From > 0 {
		from = e.From
	}
	if from <= a.last {
		a.doubled++
	}
	if from > a.last+1 {
		a.reordered++
	}
	a.last = e.Sequence
	if d, err := event.As[event.MessageDeltaData](e); err == nil && e.Type == event.MessageDelta {
		a.texts[d.MessageID] += d.Text
		return
	}
	a.events[e.Sequence] = e
}

// lacks returns how many events and texts of the whole are not as in it.
func (a *account) lacks(whole account) (n int) {
	for seq, e := range whole.events {
		if has := a.events[seq]; has.ID != e.ID || has.Type != e.Type {
			n++
		}
	}
	for message, text := range whole.texts {
		if a.texts[message] != text {
			n++
		}
	}
	return n
}

// cutLine is a line to an address, whose connections the test cuts.
type cutLine struct {
	to string
	l  net.Listener

	mu   sync.Mutex
	open map[net.Conn]net.Conn
}

func newCutLine(t *testing.T, to string) *cutLine {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutLine{to: to, l: l, open: map[net.Conn]net.Conn{}}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { c.carry(t.Context(), near) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.cut()
		work.Wait()
	})
	return c
}

func (c *cutLine) url() string { return "http://" + c.l.Addr().String() }

// carry carries a connection until one of its ends closes it, or it is cut.
func (c *cutLine) carry(ctx context.Context, near net.Conn) {
	defer func() { _ = near.Close() }()
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.to)
	if err != nil {
		return // the gateway is away
	}
	c.mu.Lock()
	c.open[near] = far
	c.mu.Unlock()
	var work sync.WaitGroup
	for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
		work.Go(func() {
			_, _ = io.Copy(ends[0], ends[1])
			_, _ = ends[0].Close(), ends[1].Close()
		})
	}
	work.Wait()
	c.mu.Lock()
	delete(c.open, near)
	c.mu.Unlock()
}

// cut ends all connections, and returns how many.
func (c *cutLine) cut() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.open)
	for near, far := range c.open {
		_, _ = near.Close(), far.Close()
		delete(c.open, near)
	}
	return n
}
