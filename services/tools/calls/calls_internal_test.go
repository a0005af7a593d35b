package calls

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
)

// clock is a time that only the test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func TestCallsAreRememberedForAWhile(t *testing.T) {
	c := &clock{t: time.Unix(0, 0)}
	table := New(2, 2, c.now)
	call := tools.Call{ID: "1", Tenant: id.DefaultTenant, Tool: "x"}
	r, fresh, err := table.Begin(t.Context(), call)
	require.NoError(t, err)
	require.True(t, fresh)
	table.End(r, tools.Result{Text: "a"}, nil, true)
	c.t = c.t.Add(Remembered)
	r, fresh, err = table.Begin(t.Context(), call)
	require.NoError(t, err)
	require.False(t, fresh)
	require.Equal(t, "a", r.result.Text)
	c.t = c.t.Add(time.Second)
	_, fresh, err = table.Begin(t.Context(), call)
	require.NoError(t, err)
	require.True(t, fresh, "forgotten")
}

// TestATenantsCallsLeaveOthersTheirPlaces: calls that hang take the tenant's own places, bytes and callers only.
func TestATenantsCallsLeaveOthersTheirPlaces(t *testing.T) {
	table := New(3, 2, time.Now)
	table.maxWaiting = 300
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	begin := func(tenant id.Tenant, id string, bytes int) error {
		_, _, err := table.Begin(t.Context(), tools.Call{ID: id, Tenant: tenant, Arguments: make([]byte, bytes)})
		return err
	}
	require.NoError(t, begin(id.DefaultTenant, "1", 0))
	require.ErrorIs(t, begin(id.DefaultTenant, "2", 201), fault.New(fault.ToolsBusy), "its share of the bytes")
	require.NoError(t, begin(id.DefaultTenant, "2", 200))
	require.ErrorIs(t, begin(id.DefaultTenant, "3", 0), fault.New(fault.ToolsBusy), "its share of the places")
	for range 2*FollowersPerCall - 2 {
		require.NoError(t, begin(id.DefaultTenant, "1", 0), "a repeat joins")
	}
	require.ErrorIs(t, begin(id.DefaultTenant, "1", 0), fault.New(fault.ToolsBusy), "its share of the callers")
	require.NoError(t, begin(other, "1", 100), "another tenant's call runs")
	require.ErrorIs(t, begin(other, "2", 0), fault.New(fault.Overloaded), "all places are taken")

	hung := table.Find(Key{Tenant: id.DefaultTenant, ID: "2"})
	table.Leave(table.Find(Key{Tenant: id.DefaultTenant, ID: "1"}))
	require.NoError(t, begin(id.DefaultTenant, "1", 0), "a caller has left")
	table.End(hung, tools.Result{}, nil, true)
	require.NoError(t, begin(id.DefaultTenant, "3", 200), "an ended call leaves its place")
}

func TestCallsProperty(t *testing.T) {
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{t: time.Unix(0, 0)}
		table := New(3, 2, c.now)
		table.maxWaiting, table.maxKept = 1000, 3000
		var running []*Run
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				size := rapid.SampledFrom([]int{0, 100, 500, 1000}).Draw(t, "size")
				tenant := rapid.SampledFrom([]id.Tenant{id.DefaultTenant, other}).Draw(t, "tenant")
				call := tools.Call{ID: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id")), Tenant: tenant, Arguments: make([]byte, size)}
				r, fresh, err := table.Begin(context.Background(), call)
				if fresh {
					require.NoError(t, err)
					running = append(running, r)
				} else if err == nil && rapid.Bool().Draw(t, "leaves") {
					table.Leave(r)
				}
			case 2:
				if len(running) == 0 {
					continue
				}
				size := rapid.SampledFrom([]int{0, 1000, 3000}).Draw(t, "result")
				table.End(running[0], tools.Result{Text: strings.Repeat("x", size)}, nil, rapid.Bool().Draw(t, "keep"))
				running = running[1:]
			case 3:
				c.t = c.t.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "s")) * time.Second)
			}
			require.Equal(t, len(running), table.running)
			require.LessOrEqual(t, table.running, 3)
			require.LessOrEqual(t, table.waiting, 1000)
			require.LessOrEqual(t, table.size, 3000)
			require.Len(t, table.all, len(running)+len(table.kept))
			require.Equal(t, len(running) == 0, closed(table.idle))
			sum := usage{}
			for _, u := range table.tenants {
				require.LessOrEqual(t, u.running, 2)
				require.LessOrEqual(t, u.callers, 2*FollowersPerCall)
				require.Positive(t, u.running)
				sum.running, sum.waiting = sum.running+u.running, sum.waiting+u.waiting
			}
			require.Equal(t, usage{running: table.running, waiting: table.waiting}, sum)
		}
	})
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestNotesAreDroppedRatherThanWaitedFor(t *testing.T) {
	var n notes
	require.Zero(t, n.tell(tools.Notification{}))
	l := n.listen()
	for range Waiting {
		require.Zero(t, n.tell(tools.Notification{}))
	}
	require.Equal(t, 1, n.tell(tools.Notification{}))
	got := 0
	l.Rest(func(tools.Notification) { got++ })
	require.Equal(t, Waiting, got)
	l.Stop()
	require.Zero(t, n.tell(tools.Notification{}))
}
