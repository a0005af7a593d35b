package testsignal_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/testsignal"
)

func TestASignalWithoutAWaiterDoesNothing(t *testing.T) {
	var s testsignal.Signal[int]
	s.Send(1)
	w := s.Arm(t)
	s.Send(2)
	require.Equal(t, 2, w.Next(), "what was sent before is not told")
	w.Disarm()
	s.Send(3)
	again := s.Arm(t)
	w.Disarm() // of the former waiter, which is over
	s.Send(4)
	require.Equal(t, 4, again.Next())
}

// Each value comes once, and those of one sender in order, however many send while the test waits.
func TestNoValueIsLost(t *testing.T) {
	const senders, each = 8, 200
	var s testsignal.Signal[[2]int]
	w := s.Arm(t)
	var all sync.WaitGroup
	for sender := range senders {
		all.Go(func() {
			for n := range each {
				s.Send([2]int{sender, n})
			}
		})
	}
	var next [senders]int
	for range senders * each {
		v := w.Next()
		require.Equal(t, next[v[0]], v[1])
		next[v[0]]++
	}
	all.Wait()
}

func TestUntilLooksAgainAfterEachValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s testsignal.Signal[int]
		w := s.Arm(t)
		w.Until(func() bool { return true })
		looks, enough := 0, make(chan struct{})
		go func() {
			w.Until(func() bool { looks++; return looks > 3 })
			close(enough)
		}()
		for n := range 3 {
			synctest.Wait()
			require.Equal(t, n+1, looks)
			s.Send(n)
		}
		<-enough
	})
}

// failing is a test that fails without ending the one that plays it.
type failing struct {
	*testing.T
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestWhatNeverComesFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s testsignal.Signal[int]
		f := &failing{T: t}
		w := s.Arm(f)
		for want, do := range map[string]func(){
			"no signal came":              func() { w.Next() },
			"the signal is armed already": func() { s.Arm(f) },
		} {
			var ended sync.WaitGroup
			ended.Go(do)
			ended.Wait()
			require.Equal(t, want, f.said)
		}
	})
}

func BenchmarkSendWithoutAWaiter(b *testing.B) {
	var s testsignal.Signal[int]
	for b.Loop() {
		s.Send(1)
	}
}
