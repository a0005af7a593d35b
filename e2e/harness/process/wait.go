package process

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Poll is the pause between two attempts at a state that nothing signals.
const Poll = 100 * time.Millisecond

// Eventually waits until the condition holds.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, MaxWait, 50*time.Millisecond, what)
}

// Within bounds a step of a test.
func Within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// Answer is the answer to an HTTP request.
type Answer struct {
	Status int
	Body   string
}

// Get asks for a URL.
func Get(t testing.TB, url string) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), MaxWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return Answer{Status: resp.StatusCode, Body: string(body)}
}

// Rest returns after d, or earlier with ctx's error.
func Rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Until polls until the condition holds, or returns the error of the context.
func Until(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
