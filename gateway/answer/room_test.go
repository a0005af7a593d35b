package answer_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func codeOf(t *testing.T, err error) fault.Code {
	t.Helper()
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok, "%v", err)
	require.True(t, f.Retryable())
	return f.Code
}

// TestRoomIsShared: a principal gets a third, all together the whole, and what is given up is for others.
func TestRoomIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := answer.NewRoom(300)
		enter := func(who string, bytes int) (*answer.Part, error) { return r.Enter(t.Context(), who, bytes) }
		must := func(who string, bytes int) *answer.Part {
			p, err := enter(who, bytes)
			require.NoError(t, err)
			return p
		}
		a := must("a", 1000) // alone in its share
		_, err := enter("a", 1)
		require.Equal(t, fault.RateLimited, codeOf(t, err))
		b, c := must("b", 100), must("c", 60)
		_, err = enter("d", 50)
		require.Equal(t, fault.Overloaded, codeOf(t, err))
		d := must("d", 40)
		a.Shrink(70)
		a.Shrink(90) // never more
		more := must("a", 30)
		_, err = enter("a", 1)
		require.Equal(t, fault.RateLimited, codeOf(t, err))
		for _, p := range []*answer.Part{a, b, c, d, more} {
			p.Leave()
		}
		must("e", 100).Leave()
	})
}

// TestAnAnswerWaitsForRoom a little: pages are made within milliseconds.
func TestAnAnswerWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := answer.NewRoom(300)
		first, err := r.Enter(t.Context(), "a", 100)
		require.NoError(t, err)
		done := make(chan error)
		go func() {
			p, err := r.Enter(t.Context(), "a", 100)
			p.Leave()
			done <- err
		}()
		synctest.Wait()
		first.Leave()
		require.NoError(t, <-done)
		gone, cancel := context.WithCancel(t.Context())
		first, err = r.Enter(gone, "a", 100)
		require.NoError(t, err)
		cancel()
		_, err = r.Enter(gone, "a", 1)
		require.Error(t, err, "the client has left")
		first.Leave()
	})
}

// TestWithoutARoom nothing is bounded.
func TestWithoutARoom(t *testing.T) {
	var r *answer.Room
	p, err := r.Enter(t.Context(), "a", 1<<40)
	require.NoError(t, err)
	p.Shrink(1)
	p.Leave()
}

// TestFewPagesAreMadeAtOnce: half of the processors serve all else, and a page that waits too long is refused.
func TestFewPagesAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := answer.NewRoom(0)
		var all []func()
		for range max(1, runtime.GOMAXPROCS(0)/2) {
			made, err := r.Make(t.Context())
			require.NoError(t, err)
			all = append(all, made)
		}
		_, err := r.Make(t.Context())
		require.Equal(t, fault.Overloaded, fault.From(err, "").Code)
		time.AfterFunc(time.Second, all[0])
		made, err := r.Make(t.Context())
		require.NoError(t, err)
		made()
	})
}
