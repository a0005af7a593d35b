//go:build nightly

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// gatewayKills is how often TestAGUIStreamsSurviveKills kills a gateway.
var gatewayKills = flag.Int("gateway-kills", 6, "how many gateways TestAGUIStreamsSurviveKills kills")

const (
	soakThreads  = 6 // that talk at the same time
	soakRuns     = 4 // of one thread
	soakGateways = 3 // that die
	minColdCuts  = 50
)

// aguiSoak is an installation whose gateways are killed at random below streams.
type aguiSoak struct {
	*gatewaysThatDie
	t      *testing.T
	calm   string // the address of a gateway that lives
	stop   chan struct{}
	frames atomic.Int64
	more   chan struct{} // a frame has come

	mu     sync.Mutex
	random *rand.Rand
	sum    cutTally
}

// cutTally counts what viewers saw whose lines broke, beside what others saw.
type cutTally struct {
	streams, frames, breaks, cold         int
	lost, doubled, reordered, changed, no int // no: frames that no other viewer got
}

// compare counts how the frames that came in pieces differ from the whole.
func (s *cutTally) compare(got, whole []aguiFrame) {
	place, seen, last := map[string]int{}, map[string]bool{}, -1
	for i, f := range whole {
		place[f.id] = i
	}
	for _, f := range got {
		i, known := place[f.id]
		switch {
		case !known:
			s.no++
			continue
		case seen[f.id]:
			s.doubled++
			continue
		case i < last:
			s.reordered++
		}
		if f.data != whole[i].data {
			s.changed++
		}
		seen[f.id], last = true, max(last, i)
	}
	s.lost += len(whole) - len(seen)
	s.streams++
	s.frames += len(got)
}

func (s *aguiSoak) pick(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// seen notes a frame of a stream that may break.
func (s *aguiSoak) seen() {
	s.frames.Add(1)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// soaked answers chats with a file of the workspace, plans with two steps, and everything slowly.
func soaked() scripted.Script {
	return scripted.Stages{
		Plan:      scripted.Always(scripted.Plan(tasks("a", "b")...)),
		Solve:     scripted.Always(slowly(30)),
		Aggregate: scripted.Always(slowly(30)),
		Chat: func(x *scripted.Exchange) scripted.Reply {
			if text, results := toldBy(x); strings.Contains(text, "read") && results == 0 {
				return scripted.Stream(scripted.Calls(0, scripted.Call{ID: "call_" + newRun(), Name: "workspace_read_file", Arguments: `{"path":"notes.md"}`}))
			}
			return slowly(60)
		},
	}.Script()
}

// TestAGUIStreamsSurviveKills: gateways are killed at random below chats, plans and calls of tools. A viewer that resumes has the
// whole in the end, byte for byte; one that joins anew each time has the messages of a viewer whose stream has never broken.
func TestAGUIStreamsSurviveKills(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	f, calm, _ := aguiFleet(t, soaked(), 1, "")
	s := &aguiSoak{
		t: t, gatewaysThatDie: &gatewaysThatDie{}, calm: calm[0], stop: make(chan struct{}), more: make(chan struct{}, 1),
		random: rand.New(rand.NewPCG(seed, 0)),
	}
	for range soakGateways {
		s.add(f)
	}
	began := time.Now()
	err := s.run(f)
	t.Logf("seed %d: %d kills in %.0f s; %d streams with %d frames, broken %d times and resumed: %d lost, %d doubled, %d reordered, %d changed, %d that no other viewer got; "+
		"%d cold joins in the middle of a run", seed, s.kills, time.Since(began).Seconds(), s.sum.streams, s.sum.frames, s.sum.breaks,
		s.sum.lost, s.sum.doubled, s.sum.reordered, s.sum.changed, s.sum.no, s.sum.cold)
	require.NoError(t, err)
	require.Zero(t, s.sum.lost+s.sum.doubled+s.sum.reordered+s.sum.changed+s.sum.no)
	require.Equal(t, *gatewayKills, s.kills)
	require.Positive(t, s.sum.breaks)
	require.GreaterOrEqual(t, s.sum.cold, minColdCuts)
}

// run has threads talk until enough gateways were killed.
func (s *aguiSoak) run(f *fleet) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(2+*gatewayKills/15)*process.MaxWait)
	defer cancel()
	work, ctx := errgroup.WithContext(ctx)
	for range soakThreads {
		work.Go(func() error {
			for {
				if err := s.talk(ctx); err != nil {
					return err
				}
				select {
				case <-s.stop:
					return nil
				default:
				}
			}
		})
	}
	done := make(chan error, 1)
	go func() { done <- work.Wait() }()
	for s.kills < *gatewayKills || s.joins() < minColdCuts {
		for enough := s.frames.Load() + 1 + int64(s.pick(60)); s.frames.Load() < enough; {
			select {
			case <-s.more:
			case err := <-done:
				return err
			}
		}
		if s.kills < *gatewayKills {
			s.kill(s.pick(soakGateways))
			s.add(f)
		}
	}
	close(s.stop)
	return <-done
}

// joins is how often viewers have joined anew.
func (s *aguiSoak) joins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum.cold
}

// talk has a new thread answer some messages.
func (s *aguiSoak) talk(ctx context.Context) error {
	thread := newRun()
	for n := range soakRuns {
		text, change := "speak", func(map[string]any) {}
		switch n % 3 {
		case 1:
			text = "read"
		case 2:
			change = func(in map[string]any) {
				in["forwardedProps"] = map[string]any{"waggle": map[string]any{"mode": "plan", "confirmPlan": false}}
			}
		}
		run := newRun()
		if err := s.answer(ctx, thread, run, aguiInput(thread, run, text, change)); err != nil {
			return fmt.Errorf("thread %s, run %s: %w", thread, run, err)
		}
	}
	return nil
}

// answer asks for a run, and watches it in three ways: resuming, joining anew, and at the gateway that lives.
func (s *aguiSoak) answer(ctx context.Context, thread, run string, post []byte) error {
	path, known := "/threads/"+thread+"/runs/"+run, make(chan struct{})
	begin := sync.OnceFunc(func() { close(known) })
	var got, joined, uncut []aguiFrame
	var breaks, cuts int
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() (err error) {
		got, breaks, err = persist(ctx, s.t, s.gatewaysThatDie, "", thread, run, post, func() { begin(); s.seen() })
		return err
	})
	work.Go(func() (err error) {
		if err = isKnown(ctx, known); err == nil {
			joined, cuts, err = s.rejoin(ctx, path)
		}
		return err
	})
	work.Go(func() (err error) {
		if err = isKnown(ctx, known); err == nil {
			uncut, err = s.view(ctx, s.calm, path, 0)
		}
		return err
	})
	if err := work.Wait(); err != nil {
		return err
	}
	whole := (aguiClient{t: s.t, addr: s.calm}).get(path, "Last-Event-ID", got[0].id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum.compare(got[1:], whole)
	s.sum.breaks += breaks
	s.sum.cold += cuts
	if one, other := conversation(uncut), conversation(joined); !maps.Equal(one, other) {
		return fmt.Errorf("a viewer that joined %d times has other messages:\n%v\n%v", cuts+1, one, other)
	}
	return nil
}

// isKnown waits until a run is known.
func isKnown(ctx context.Context, known <-chan struct{}) error {
	select {
	case <-known:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rejoin joins a run until its end, anew at another gateway after some frames, and whenever the gateway has died.
func (s *aguiSoak) rejoin(ctx context.Context, path string) (all []aguiFrame, cuts int, err error) {
	for {
		frames, err := s.view(ctx, s.any(), path, 20+s.pick(60))
		switch all = append(all, frames...); {
		case err != nil, ended(frames):
			return all, cuts, err
		case len(frames) > 0:
			cuts++
		}
	}
}

// view reads a stream until its end, or enough frames of it, 0 = all. A gateway that has died has sent none.
func (s *aguiSoak) view(ctx context.Context, addr, path string, enough int) ([]aguiFrame, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/agui"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, ctx.Err()
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	n := 0
	return (aguiClient{t: s.t}).stream(resp, func(aguiFrame) bool { n++; return n != enough }), nil
}

// ended tells whether frames end with the end of a run.
func ended(frames []aguiFrame) bool {
	n := len(frames)
	return n > 0 && (frames[n-1].Type == wire.RunFinished || frames[n-1].Type == wire.RunError)
}

// conversation is the messages that a viewer has in the end, by their ids.
func conversation(frames []aguiFrame) map[string]string {
	out := map[string]string{}
	keep := func(list []wire.Message) {
		for _, m := range list {
			out[m.ID] = m.Role + ": " + unquoted(m.Content)
		}
	}
	for _, f := range frames {
		var m struct {
			MessageID, Role, Delta string
			Content                json.RawMessage
			Messages               []wire.Message
			Input                  struct{ Messages []wire.Message }
		}
		_ = json.Unmarshal([]byte(f.data), &m) // stream has read it
		switch f.Type {
		case wire.RunStarted:
			keep(m.Input.Messages)
		case wire.MessagesSnapshot:
			clear(out)
			keep(m.Messages)
		case wire.TextMessageStart, wire.ReasoningMessageStart:
			if out[m.MessageID] == "" { // else a snapshot had its beginning
				out[m.MessageID] = m.Role + ": "
			}
		case wire.TextMessageContent, wire.ReasoningMessageContent:
			out[m.MessageID] += m.Delta
		case wire.ToolCallResult:
			out[m.MessageID] = wire.RoleTool + ": " + unquoted(m.Content)
		}
	}
	maps.DeleteFunc(out, func(_, said string) bool { return strings.HasSuffix(said, ": ") }) // calls alone
	return out
}

// unquoted is a text in JSON, without its quotes.
func unquoted(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// aguiFleet starts services and gateways, and returns the addresses of the latter.
func aguiFleet(t *testing.T, script scripted.Script, gateways int, config string) (f *fleet, addrs []string, procs []*process.Process) {
	t.Helper()
	f = newFleet(t, script)
	f.configure("gateway: {message_rate: 1000, message_burst: 1000}\n" + config)
	f.serve("session,pipeline,worker,tools")
	for range gateways {
		p, addr := f.gateway()
		addrs, procs = append(addrs, addr), append(procs, p)
	}
	return f, addrs, procs
}
