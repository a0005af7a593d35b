package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// doorman accepts the tokens good and late, and cannot check the token down.
type doorman struct {
	mu     sync.Mutex
	looked int
}

func (d *doorman) Authenticate(_ context.Context, token string) (auth.Principal, error) {
	d.mu.Lock()
	d.looked++
	d.mu.Unlock()
	switch token {
	case "good", "late":
		return auth.Principal{Subject: token}, nil
	case "down":
		return auth.Principal{}, errors.New("the issuer does not answer")
	}
	return auth.Principal{}, fault.New(fault.Unauthenticated)
}

func codeOf(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.From(err, "ref").Code
}

func TestFailedLoginsAreDelayedThenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doorman{}
		l, err := NewLogins(d, time.Now)
		require.NoError(t, err)
		try := func(from, token string) (fault.Code, time.Duration) {
			began := time.Now()
			_, err := l.Authenticate(t.Context(), from, token)
			return codeOf(err), time.Since(began)
		}
		const stranger, proxy = "192.0.2.1:1000", "10.0.0.1:1000"
		code, _ := try(stranger, "good")
		require.Empty(t, code)

		// One failure after the other, then many at once.
		for n := range 10 {
			code, took := try(stranger, fmt.Sprint("slow", n))
			require.Equal(t, fault.Unauthenticated, code)
			if n < freeFailures-1 {
				require.Zero(t, took, n)
			}
		}
		var all sync.WaitGroup
		took, codes := make([]time.Duration, 100), make([]fault.Code, 100)
		for n := range took {
			all.Go(func() { codes[n], took[n] = try(stranger, fmt.Sprint("bad", n)) })
		}
		synctest.Wait()
		code, passed := try(stranger, "good")
		require.Empty(t, code, "others behind the address go on")
		require.Zero(t, passed)
		code, passed = try(stranger, "late")
		require.Equal(t, fault.RateLimited, code, "a token that was never good")
		require.Equal(t, maxDelay, passed, "those who guess wait for refusals, too")
		all.Wait()
		require.Equal(t, maxDelay, slices.Max(took))
		require.Less(t, d.looked, 40, "tokens that were looked at")
		require.Contains(t, codes, fault.RateLimited)

		code, _ = try("192.0.2.2:1000", "late")
		require.Empty(t, code, "another address")
		<-time.After(time.Second)
		code, _ = try(stranger, "late")
		require.Empty(t, code, "after a second")

		for n := range 100 {
			code, _ = try(proxy, fmt.Sprint("bad", n))
			require.Equal(t, fault.Unauthenticated, code)
		}
		code, passed = try(proxy, "late")
		require.Empty(t, code, "a proxy stands for all clients")
		require.Zero(t, passed)

		for range 100 {
			code, passed = try("192.0.2.3:1000", "down")
			require.Equal(t, fault.Internal, code)
			require.Zero(t, passed, "an outage is not the client's failure")
		}
	})
}

// TestRequestsWithoutATokenDoNotCount: a page whose reader has not signed in yet sends several, and bars none of its neighbours.
func TestRequestsWithoutATokenDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLogins(&doorman{}, time.Now)
		require.NoError(t, err)
		const shared = "192.0.2.1:1000"
		began := time.Now()
		for range 10 * loginBurst {
			_, err := l.Authenticate(t.Context(), shared, "")
			require.Equal(t, fault.Unauthenticated, codeOf(err))
			_, err = l.Known(t.Context(), shared, "")
			require.Equal(t, fault.Unauthenticated, codeOf(err))
		}
		_, err = l.Authenticate(t.Context(), shared, "late")
		require.NoError(t, err, "the first login of another reader")
		require.Zero(t, time.Since(began))
	})
}

func TestFewAnswersAreDelayedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLogins(&doorman{}, time.Now)
		require.NoError(t, err)
		began := time.Now()
		var all sync.WaitGroup
		for n := range 10 * maxDelayed {
			all.Go(func() { _, _ = l.Authenticate(t.Context(), fmt.Sprintf("10.0.0.%d:1", n%8), "bad") })
		}
		synctest.Wait()
		require.LessOrEqual(t, len(l.delayed), maxDelayed)
		all.Wait()
		require.LessOrEqual(t, time.Since(began), maxDelay)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began = time.Now()
		_, err = l.Authenticate(ctx, "10.0.0.1:1", "bad")
		require.Equal(t, fault.Unauthenticated, codeOf(err))
		require.Zero(t, time.Since(began), "a client that has gone is not waited for")
	})
}

// TestKnownTokensCostNothing: a look at a token neither counts nor delays, and an address without further logins gets none.
func TestKnownTokensCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doorman{}
		l, err := NewLogins(d, time.Now)
		require.NoError(t, err)
		const stranger = "192.0.2.1:1000"
		began := time.Now()
		for range 2 * loginBurst {
			_, err := l.Known(t.Context(), stranger, "bad")
			require.Equal(t, fault.Unauthenticated, codeOf(err))
		}
		who, err := l.Known(t.Context(), stranger, "good")
		require.NoError(t, err)
		require.Equal(t, "good", who.Subject)
		require.Zero(t, time.Since(began))
		var all sync.WaitGroup
		for range loginBurst {
			all.Go(func() { _, _ = l.Authenticate(t.Context(), stranger, "bad") })
		}
		synctest.Wait()
		looked := d.looked
		_, err = l.Known(t.Context(), stranger, "late")
		require.Equal(t, fault.RateLimited, codeOf(err))
		require.Equal(t, looked, d.looked)
		all.Wait()
	})
}
