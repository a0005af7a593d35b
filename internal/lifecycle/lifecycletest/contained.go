package lifecycletest

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/lifecycle"
)

// label marks the goroutines of the component under test. A goroutine inherits the labels of its starter, so that
// those of a shared server or connection do not count, whenever they appear.
const label = "lifecycletest"

// contained runs the test and fails it for goroutines that the component leaves.
func contained(t *testing.T, c lifecycle.Component, run func(*testing.T, lifecycle.Component)) {
	t.Helper()
	// A failed test ends its goroutine, and the component must not outlive it.
	defer within(t, "Stop", c.Stop)
	pprof.Do(t.Context(), pprof.Labels(label, t.Name()), func(context.Context) { run(t, c) })
	noGoroutines(t)
}

// LeavesNothing runs f and fails the test for goroutines that f leaves.
func LeavesNothing(t *testing.T, f func()) {
	t.Helper()
	pprof.Do(t.Context(), pprof.Labels(label, t.Name()), func(context.Context) { f() })
	noGoroutines(t)
}

// within fails the test if f hangs. f may use require.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		if t.Failed() {
			t.FailNow()
		}
	case <-time.After(maxWait):
		require.FailNow(t, what+" does not return", "goroutines:\n%s", all())
	}
}

// noGoroutines waits until all goroutines of the component have ended: a cancelled one may need a moment after Stop
// has returned.
func noGoroutines(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(maxWait)
	for left := labelled(t.Name()); len(left) > 0; left = labelled(t.Name()) {
		select {
		case <-tick.C:
		case <-late:
			require.FailNow(t, "goroutines of the component are still there", strings.Join(left, "\n\n"))
		}
	}
}

// labelled returns the stacks of the goroutines that carry the label's value, except the test's own.
func labelled(value string) []string {
	var out []string
	for stack := range strings.SplitSeq(all(), "\n\n") {
		if strings.Contains(stack, `"`+label+`":"`+value+`"`) && !strings.Contains(stack, "lifecycletest.contained+") && !strings.Contains(stack, "lifecycletest.LeavesNothing+") {
			out = append(out, stack)
		}
	}
	return out
}

// all returns the goroutine profile as text, with labels.
func all() string {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return err.Error()
	}
	return b.String()
}

// maxWait is the time after which a call counts as hanging. It does not test speed: the machine may be busy.
var maxWait = time.Minute
