package calls

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
)

// clock is a time that only the test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func TestCallsAreRememberedForAWhile(t *testing.T) {
	c := &clock{t: time.Unix(0, 0)}
	table := New(2, c.now)
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

func TestCallsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{t: time.Unix(0, 0)}
		table := New(3, c.now)
		table.maxWaiting, table.maxKept = 1000, 3000
		var running []*Run
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				size := rapid.SampledFrom([]int{0, 100, 500, 1000}).Draw(t, "size")
				call := tools.Call{ID: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id")), Tenant: id.DefaultTenant, Arguments: make([]byte, size)}
				r, fresh, err := table.Begin(context.Background(), call)
				if fresh {
					require.NoError(t, err)
					running = append(running, r)
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
