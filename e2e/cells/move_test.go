package cells_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/cell"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// talker asks question after question in a chat, which viewers watch through both gateways.
type talker struct {
	*chat
	key     string
	asked   atomic.Int64
	viewers []*viewer
}

// talkers opens a chat of each user through each gateway, and lets them talk until stop is set.
func (s *site) talkers(g *errgroup.Group, stop *atomic.Bool) (all []*talker) {
	s.t.Helper()
	for _, key := range []string{redKey, blueKey} {
		for _, at := range []string{"a", "b"} {
			c := &talker{chat: s.talk(at, key), key: key}
			require.NoError(s.t, c.ask("What is 1 + 1?"), "%s at %s", key, at)
			c.asked.Add(1)
			for _, through := range []string{"a", "b"} {
				c.viewers = append(c.viewers, s.watch(through, key, c.client.Session()))
			}
			all = append(all, c)
		}
	}
	for _, c := range all {
		g.Go(func() error {
			for !stop.Load() {
				if err := c.ask(fmt.Sprintf("What is %d + 30?", c.asked.Load())); err != nil {
					return err
				}
				c.asked.Add(1)
			}
			return nil
		})
	}
	return all
}

// further waits until each chat has got that many more answers. talking is done when a chat has failed.
func further(talking context.Context, t *testing.T, all []*talker, n int64) {
	t.Helper()
	for _, c := range all {
		want := c.asked.Load() + n
		process.Eventually(t, "more answers", func() bool { return c.asked.Load() >= want || talking.Err() != nil })
		require.NoError(t, context.Cause(talking))
	}
}

// TestATenantMovesWhileItsUsersTalk: one tenant moves to the other cell and back while users of two tenants talk through both
// gateways. Every viewer has each frame once and in order, no question is lost or answered twice, its team works on, and the
// other tenant's users do not notice.
func TestATenantMovesWhileItsUsersTalk(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.pair(t, "b", redKey)
	team.ask("What is 1 + 1?")
	var stop atomic.Bool
	g, talking := errgroup.WithContext(t.Context())
	all := s.talkers(g, &stop)
	further(talking, t, all, 2)
	for _, way := range [][2]string{{"a", "b"}, {"b", "a"}} {
		t.Log(s.command(way[0], "cells", "move", "red", "--to", s.cells[way[1]].file))
		require.Contains(t, s.command("a", "cells", "list"), "tenant red "+way[1]+"\n")
		further(talking, t, all, 2)
		team.ask("What is 2 + 2?")
	}
	team.close()
	stop.Store(true)
	require.NoError(t, g.Wait())
	frames, returns := 0, 0
	for _, c := range all {
		c.mu.Lock()
		lost, wrong := c.lost, c.wrong
		c.mu.Unlock()
		require.Empty(t, wrong)
		if c.key == blueKey {
			require.Zero(t, lost, "connections of a tenant that does not move")
		} else {
			require.Positive(t, lost)
		}
		want := s.replay("a", c.key, c.client.Session(), int(c.asked.Load()))
		asked := 0
		for _, f := range want {
			if f.Type == "user_input" {
				asked++
			}
		}
		require.EqualValues(t, c.asked.Load(), asked, "each question is accepted once")
		for _, v := range c.viewers {
			v.exact(t, want)
			got, _ := v.has()
			require.Len(t, got, len(want))
			frames += len(got)
			returns += v.link.Returns()
		}
	}
	t.Logf("%d frames at viewers that came back %d times", frames, returns)
}

// TestAMoveIsGivenUpWhileWorkGoesOn, and the old cell continues with the tenant.
func TestAMoveIsGivenUpWhileWorkGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.talk("a", redKey)
	require.NoError(t, c.ask("What is 1 + 1?"))
	p := process.Start(t, process.Options{Name: "waggle move", Args: []string{
		"cells", "move", "red", "--config", s.cells["a"].file, "--to", s.cells["b"].file, "--max-wait", "1ns",
	}})
	require.Error(t, p.Wait())
	require.Contains(t, p.Output(), "timed out")
	require.Contains(t, s.command("a", "cells", "list"), "tenant red a\n")
	require.NoError(t, c.ask("What is 2 + 2?"))
	process.Eventually(t, "the other gateway knows as well", func() bool {
		return s.ask("b", redKey, http.MethodGet, "/api/v1/sessions/"+c.client.Session()).status == http.StatusOK
	})
}

// TestAMoverIsKilled: the tenant waits until an operator abandons the move, and its users continue where they were.
func TestAMoverIsKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, other := s.talk("a", redKey), s.talk("b", blueKey)
	require.NoError(t, c.ask("What is 1 + 1?"))
	control, err := cell.Open(t.Context(), bustest.Dial(t, s.control.URL), id.MustName("a"))
	require.NoError(t, err)
	defer control.Close()
	_, err = control.Join(t.Context(), id.MustName("a"), id.MustName("deaf"), "http://"+s.cells["a"].addr) // it never lets the tenant go
	require.NoError(t, err)
	mover := process.Start(t, process.Options{Name: "waggle move", Args: []string{
		"cells", "move", "red", "--config", s.cells["a"].file, "--to", s.cells["b"].file,
	}})
	process.Eventually(t, "the move", func() bool { return control.Place(tenant(t, "red")).Moving() })
	mover.Kill()
	for _, at := range []string{"a", "b"} {
		process.Eventually(t, "a refusal", func() bool {
			got := s.ask(at, redKey, http.MethodGet, "/api/v1/sessions")
			return got.status == http.StatusServiceUnavailable && got.title == "TENANT_MOVING" && got.after == "5"
		})
	}
	require.NoError(t, other.ask("What is 1 + 1?"))
	require.Contains(t, s.command("a", "cells", "list"), "tenant red a moves to b since ")
	require.Contains(t, s.command("a", "cells", "abandon", "red"), "a serves red again")
	require.NoError(t, c.ask("What is 2 + 2?"))
}

func tenant(t *testing.T, name string) id.Tenant {
	t.Helper()
	out, err := id.ParseTenant(name)
	require.NoError(t, err)
	return out
}

// TestAKilledCellTakesOnlyItsTenants: users of its tenants learn that their cell is gone, and when to try again; users of other
// tenants do not notice, not even when the control cluster goes as well.
func TestAKilledCellTakesOnlyItsTenants(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.command("a", "cells", "assign", "blue", "b")
	s.settled()
	red, blue := s.talk("a", redKey), s.talk("a", blueKey)
	require.NoError(t, red.ask("What is 1 + 1?"))
	require.NoError(t, blue.ask("What is 1 + 1?"))
	late := client.DialOrbit(t, "ws://"+s.cells["a"].addr+"/ws")
	late.Send(`{"type":"auth","token":"` + blueKey + `"}`)
	late.Until("agent_ready")
	s.cells["b"].Kill()
	_, err := late.Next()
	for err == nil {
		_, err = late.Next()
	}
	require.Equal(t, 1013, client.CloseCode(err), "try again later")
	got := s.ask("a", blueKey, http.MethodGet, "/api/v1/sessions")
	require.Equal(t, answer{status: http.StatusServiceUnavailable, after: "5", title: "CELL_UNAVAILABLE", body: got.body}, got)
	require.NoError(t, red.ask("What is 2 + 2?"))
	s.control.Stop()
	require.NoError(t, red.ask("What is 3 + 3?"))
	require.NoError(t, s.talk("a", redKey).ask("What is 4 + 4?"))
	require.Equal(t, "CELL_UNAVAILABLE", s.ask("a", blueKey, http.MethodGet, "/api/v1/sessions").title)
	red.mu.Lock()
	defer red.mu.Unlock()
	require.Zero(t, red.lost)
}
