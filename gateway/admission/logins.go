package admission

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// loginBurst and loginRate are the failed logins of one address: at once, and per second from then on.
	loginBurst = 20
	loginRate  = 1
	// freeFailures is the number of failures without a delay: a person who pastes the wrong key, a client with an old token.
	freeFailures = 5
	// firstDelay doubles with each further failure, up to maxDelay.
	firstDelay = 50 * time.Millisecond
	maxDelay   = 2 * time.Second
	// maxDelayed bounds the answers that are delayed at the same time: beyond it they come at once. It is twice the connections
	// that may be unauthenticated, so that only clients that send many requests over one connection reach it.
	maxDelayed = 2 * maxPool
	// goodTokens is the number of tokens that are remembered as good: 32 bytes each, some 1.5 MB with the index.
	goodTokens = 10_000
)

// Logins authenticates clients. It delays the answer to failed logins of an address more and more, and refuses further ones
// without a look at their token, except for tokens that were good before: others behind the same address stay connected.
// Refusals are delayed, too: guesses cost those who guess time, and the gateway next to nothing. Requests without a token do not
// count.
// Loopback and private addresses are mostly proxies, which stand for all clients: their logins are delayed, never refused.
// It is safe for concurrent use.
type Logins struct {
	auth    auth.Authenticator
	clock   func() time.Time
	failed  *lru.Cache[string, *rate.Limiter]
	good    *lru.Cache[[sha256.Size]byte, struct{}]
	delayed chan struct{}
	after   func(time.Duration) <-chan time.Time
}

// NewLogins returns Logins that have seen no failure.
func NewLogins(a auth.Authenticator, clock func() time.Time) (*Logins, error) {
	failed, err := lru.New[string, *rate.Limiter](DefaultKeys)
	if err != nil {
		return nil, fmt.Errorf("make the table of failed logins: %w", err)
	}
	good, err := lru.New[[sha256.Size]byte, struct{}](goodTokens)
	if err != nil {
		return nil, fmt.Errorf("make the table of good tokens: %w", err)
	}
	return &Logins{auth: a, clock: clock, failed: failed, good: good, delayed: make(chan struct{}, maxDelayed), after: time.After}, nil
}

// Authenticate returns the principal of a token that comes from an address ("192.0.2.1:4711"). An error is a fault, or says why
// the token could not be checked. A failure takes up to 2 s, within ctx.
func (l *Logins) Authenticate(ctx context.Context, remote, token string) (auth.Principal, error) {
	if l.barred(remote, token) {
		l.delay(ctx, maxDelay)
		return auth.Principal{}, fault.Newf(fault.RateLimited, "Too many failed logins. Wait a little, then try again.")
	}
	p, err := l.auth.Authenticate(ctx, token)
	if err == nil {
		l.good.Add(sha256.Sum256([]byte(token)), struct{}{})
		Yield(ctx)
		return p, nil
	}
	var f *fault.Fault
	if token != "" && errors.As(err, &f) && (f.Code == fault.Unauthenticated || f.Code == fault.Expired) {
		key, _ := Address(remote)
		l.delay(ctx, l.failure(key))
	}
	return p, err
}

// Known returns the principal of a token, as Authenticate does, and neither counts nor delays a failure: the caller has
// Authenticate refuse the token.
func (l *Logins) Known(ctx context.Context, remote, token string) (auth.Principal, error) {
	if l.barred(remote, token) {
		return auth.Principal{}, fault.New(fault.RateLimited)
	}
	return l.auth.Authenticate(ctx, token)
}

// barred reports whether an address has used up its failures, and the token was never good. A request without a token guesses
// nothing: it comes from a page before its reader has signed in.
func (l *Logins) barred(remote, token string) bool {
	key, many := Address(remote)
	if many || token == "" {
		return false
	}
	f, ok := l.failed.Get(key)
	return ok && !l.good.Contains(sha256.Sum256([]byte(token))) && f.TokensAt(l.clock()) < 1
}

// failure counts a failed login, and returns the delay of its answer.
func (l *Logins) failure(key string) time.Duration {
	f, ok := l.failed.Get(key)
	if !ok {
		fresh := rate.NewLimiter(loginRate, loginBurst)
		if f, ok, _ = l.failed.PeekOrAdd(key, fresh); !ok {
			f = fresh
		}
	}
	now := l.clock()
	f.AllowN(now, 1)
	used := loginBurst - int(math.Ceil(f.TokensAt(now)))
	if used < freeFailures {
		return 0
	}
	return min(firstDelay<<(used-freeFailures), maxDelay)
}

// delay waits, unless too many wait already.
func (l *Logins) delay(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	select {
	case l.delayed <- struct{}{}:
	default:
		return
	}
	defer func() { <-l.delayed }()
	Yield(ctx)
	select {
	case <-l.after(d):
	case <-ctx.Done():
	}
}
