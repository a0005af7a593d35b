//go:build nightly

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness/models"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// slowly says a text a word at a time, so that gateways are killed in the middle of it.
func slowly(n int) models.Reply {
	return scripted.Stream(scripted.Every(20*time.Millisecond, words(n)...), scripted.Usage(7, 5))
}

// gatewaysThatDie are gateways of a fleet, which are killed and started again while clients use them.
type gatewaysThatDie struct {
	mu    sync.Mutex
	procs []*process.Process
	addrs []string
	kills int
	calls int // of any
}

// add starts a gateway.
func (g *gatewaysThatDie) add(f *fleet) {
	p, addr := f.gateway()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.procs, g.addrs = append(g.procs, p), append(g.addrs, addr)
}

// kill kills a gateway, 0 = the oldest; the others, and its successor, serve on.
func (g *gatewaysThatDie) kill(i int) {
	g.mu.Lock()
	p := g.procs[i]
	g.procs, g.addrs = slices.Delete(g.procs, i, i+1), slices.Delete(g.addrs, i, i+1)
	g.kills++
	g.mu.Unlock()
	p.Kill()
}

// any returns a gateway that runs, another one at each call.
func (g *gatewaysThatDie) any() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	return g.addrs[g.calls%len(g.addrs)]
}

// persist reads a run of a thread until its end: at the beginning with the request post, and after its last frame whenever the line
// breaks. It returns the frames and how often it broke.
func persist(ctx context.Context, t *testing.T, g *gatewaysThatDie, base, thread, run string, post []byte, seen func()) (frames []aguiFrame, breaks int, err error) {
	for ctx.Err() == nil {
		method, path, body, last := http.MethodPost, base, post, ""
		if len(frames) > 0 {
			method, path, body, last = http.MethodGet, base+"/threads/"+thread+"/runs/"+run, nil, frames[len(frames)-1].id
		}
		r, err := http.NewRequestWithContext(ctx, method, "http://"+g.any()+"/agui"+path, strings.NewReader(string(body)))
		if err != nil {
			return nil, 0, err
		}
		r.Header.Set("Content-Type", "application/json")
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil { // it was killed
			breaks++
			continue
		}
		if resp.StatusCode == http.StatusServiceUnavailable {
			_ = resp.Body.Close()
			continue
		}
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			return nil, 0, fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
		}
		for _, f := range (aguiClient{t: t}).stream(resp, func(aguiFrame) bool { seen(); return true }) {
			if f.id != "" { // the prelude's frames have none: they are made for one viewer
				frames = append(frames, f)
			}
		}
		_ = resp.Body.Close()
		if n := len(frames); n > 0 && (frames[n-1].Type == wire.RunFinished || frames[n-1].Type == wire.RunError) {
			return frames, breaks, nil
		}
		breaks++
	}
	return nil, 0, errors.Join(ctx.Err(), fmt.Errorf("after %d frames", len(frames)))
}

// TestAGUITeamsSurviveGateways: teams work while gateways are killed, one after the other. Each viewer gets the whole, byte for byte,
// and each member is asked once.
func TestAGUITeamsSurviveGateways(t *testing.T) {
	const teams, kills = 6, 8 // at most
	c := newTeamFleet(t, models.Team{
		"Boss: go":               {models.Writes("Coder", "code"), slowly(60)},
		"Coder: Boss says code":  {models.Writes("Boss", "coded"), slowly(60)},
		"Boss: Coder says coded": {slowly(60)},
	}.Script())
	g := &gatewaysThatDie{}
	g.add(c.fleet)
	g.add(c.fleet)
	definition := object{"name": "site", "coordinator": "Boss", "members": []object{{"name": "Boss"}, {"name": "Coder", "role": "codes"}}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*process.MaxWait)
	defer cancel()
	var frames atomic.Int64
	more := make(chan struct{}, 1)
	seen := func() {
		frames.Add(1)
		select {
		case more <- struct{}{}:
		default:
		}
	}
	var all [teams][]aguiFrame
	var ids, runs [teams]string
	var breaks atomic.Int64
	var work errgroup.Group
	for i := range teams {
		ids[i], runs[i] = c.found(definition).TeamID, newRun()
		work.Go(func() error {
			got, n, err := persist(ctx, t, g, "/teams/"+ids[i], "t", runs[i], aguiInput("t", runs[i], "go", nil), seen)
			all[i] = got
			breaks.Add(int64(n))
			return err
		})
	}
	done := make(chan error, 1)
	go func() { done <- work.Wait() }()
	var err error
	for working := true; working; {
		for at := frames.Load(); working && frames.Load() < at+teams*10; {
			select {
			case <-more:
			case err = <-done:
				working = false
			}
		}
		if working && g.kills < kills {
			g.kill(0)
			g.add(c.fleet)
		}
	}
	require.NoError(t, err)
	require.Positive(t, g.kills)
	require.Positive(t, breaks.Load())
	t.Logf("%d kills, %d streams broken, %d frames", g.kills, breaks.Load(), frames.Load())
	last := aguiClient{t: t, addr: g.any()}
	for i, got := range all {
		require.Equal(t, wire.RunFinished, got[len(got)-1].Type)
		whole := last.get("/teams/"+ids[i]+"/threads/t/runs/"+runs[i], "Last-Event-ID", got[0].id)
		require.Equal(t, datas(whole), datas(got[1:]), "team %d", i)
		texts := 0
		for _, text := range said(last.get("/teams/" + ids[i] + "/threads/t")) {
			if text == strings.Join(words(60), "") {
				texts++
			}
		}
		require.Equal(t, 3, texts, "each member has said its text once")
	}
}
