package participants

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Calls are bounded, whether they are open or were a moment ago, and forgotten when
// their time has passed.
func TestCallsAreBoundedAndForgotten(t *testing.T) {
	now := time.Unix(1_000, 0)
	w := newWork(2)
	require.Equal(t, fresh, w.add("a", "in-a", now.Add(time.Second), now))
	require.Equal(t, fresh, w.add("b", "in-b", time.Time{}, now))
	require.Equal(t, full, w.add("c", "in-c", time.Time{}, now))
	require.Equal(t, known, w.add("a", "in-a2", now.Add(time.Second), now))
	require.Equal(t, 2, w.load())

	for i := range 2 {
		inbox, err := w.inbox("a", i == 1, now)
		require.NoError(t, err)
		require.Equal(t, "in-a2", inbox, "who asked last is told")
	}
	require.Equal(t, 1, w.load())
	_, err := w.inbox("a", true, now)
	require.ErrorIs(t, err, fault.New(fault.TaskFinished))
	_, err = w.inbox("a", false, now)
	require.NoError(t, err)
	require.Equal(t, fresh, w.add("a", "in-a3", time.Time{}, now), "a call may come again after its end")

	require.Equal(t, full, w.add("c", "in-c", time.Time{}, now))

	_, err = w.inbox("a", true, now)
	require.NoError(t, err)
	for i := range 9 { // ended calls take room, too, which new ones may have
		now = now.Add(time.Millisecond)
		require.Equal(t, fresh, w.add(fmt.Sprint(i), "in", time.Time{}, now))
		_, err = w.inbox(fmt.Sprint(i), true, now)
		require.NoError(t, err)
		require.LessOrEqual(t, len(w.calls), 4)
	}
	require.Equal(t, 1, w.load())
	_, err = w.inbox("5", false, now)
	require.ErrorIs(t, err, fault.New(fault.TaskNotFound), "the oldest is forgotten first")
	_, err = w.inbox("8", false, now)
	require.NoError(t, err)
	require.Equal(t, fresh, w.add("z", "in-z", time.Time{}, now))
	require.Equal(t, full, w.add("y", "in-y", time.Time{}, now))
	_, err = w.inbox("z", true, now)
	require.NoError(t, err)
	now = now.Add(2 * callAfterlife)
	w.tidy(now)
	require.Equal(t, fresh, w.add("z", "in-z", time.Time{}, now))
	require.True(t, w.tidy(now.Add(2*callLife)), "calls do not last that long")
	require.Zero(t, w.load())
	require.Equal(t, fresh, w.add("y", "in-y", time.Time{}, now))
	require.Equal(t, map[string]string{"y": "in-y"}, w.end())
	_, err = w.inbox("y", true, now)
	require.ErrorIs(t, err, fault.New(fault.TaskNotFound))
}

// The tasks of an agent are counted once each, within a bound, and one of them is the
// only one or none is.
func TestTasksAreCounted(t *testing.T) {
	w := newWork(1)
	require.Empty(t, w.only())
	w.assign("a")
	w.assign("a")
	require.Equal(t, "a", w.only())
	for i := range 2 * maxHeld {
		w.assign(fmt.Sprint(i))
	}
	require.Empty(t, w.only())
	require.Equal(t, maxHeld, w.load())
	require.True(t, w.release("a"))
	require.False(t, w.release("a"))
	require.Equal(t, maxHeld-1, w.load())
}

// A request of an agent that names no task belongs to the open task that either side mentioned
// last, even if an earlier connection was handed it.
func TestTheTaskThatWasMentionedLast(t *testing.T) {
	w := newWork(1)
	require.Empty(t, w.latest())
	w.heard("another's")
	require.Empty(t, w.latest())
	w.assign("a")
	require.Equal(t, "a", w.latest())
	w.assign("b")
	require.Equal(t, "b", w.latest())
	w.said("a")
	require.Equal(t, "a", w.latest())
	w.heard("b")
	require.Equal(t, "b", w.latest())
	w.said("earlier")
	require.Equal(t, "earlier", w.latest())
	require.Equal(t, 2, w.load(), "the gateway has not handed that over")
	w.release("earlier")
	w.said("earlier") // the SDK's last status comes after the result
	require.Equal(t, "b", w.latest())
	w.release("b")
	require.Equal(t, "a", w.latest())
	w.assign("b") // again
	require.Equal(t, "b", w.latest())
	w.release("a")
	w.release("b")
	require.Empty(t, w.latest())
	for i := range 3 * maxOver {
		w.release(fmt.Sprint(i))
		require.LessOrEqual(t, len(w.over), maxOver)
	}
	for i := range 2 * maxHeld {
		w.said(fmt.Sprintf("s%d", i))
	}
	require.Len(t, w.earlier, maxHeld)
	w.end()
	require.Empty(t, w.latest())
}
