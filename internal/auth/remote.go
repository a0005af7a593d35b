package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	// fetchInterval is the least time between two fetches. A token with an invented kid causes a fetch, so that
	// without it any client could make the gateway flood the issuer; all callers that need keys at the time share the
	// fetch and wait no longer than this.
	fetchInterval = time.Second
	// fetchTimeout bounds one fetch, the wait included. It is below the ten seconds that a client has for its first
	// message.
	fetchTimeout = 8 * time.Second
)

// remoteKeys holds the keys at a URL. It fetches them when a token names an unknown one, and keeps them.
type remoteKeys struct{ set *oidc.RemoteKeySet }

func newRemoteKeys(ctx context.Context, address string) (*remoteKeys, error) {
	u, err := url.Parse(address)
	if err == nil {
		err = checkURL(u)
	}
	if err != nil {
		return nil, fmt.Errorf("auth.jwt.jwks_url: %w", err)
	}
	client := &http.Client{
		Timeout:   fetchTimeout,
		Transport: newFetcher(),
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 {
				return errors.New("too many redirects")
			}
			return checkURL(r.URL)
		},
	}
	return &remoteKeys{oidc.NewRemoteKeySet(oidc.ClientContext(ctx, client), address)}, nil
}

// checkURL refuses addresses at which others could replace the keys in transit.
func checkURL(u *url.URL) error {
	if u.Hostname() != "" && (u.Scheme == "https" || u.Scheme == "http" && RequireLoopback(net.JoinHostPort(u.Hostname(), "0")) == nil) {
		return nil
	}
	return errors.New("want an https URL (or http on a loopback address)")
}

// knows returns true: an issuer removes a key when all tokens signed with it have expired, and a gateway must not ask
// the issuer every few seconds.
func (*remoteKeys) knows(thumbprint) bool { return true }

func (k *remoteKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.set.VerifySignature(ctx, jwt)
	// The library lacks an error type for this; a test notices when the text changes.
	if err != nil && strings.HasPrefix(err.Error(), "fetching keys ") {
		if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
			a.outage = err
		}
	}
	return payload, err
}

// fetcher is a transport for rare and small fetches.
type fetcher struct {
	base     http.RoundTripper
	interval time.Duration

	mu   sync.Mutex
	last time.Time
}

func newFetcher() *fetcher {
	return &fetcher{
		// Fetches are hours apart: do not keep connections.
		base:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		interval: fetchInterval,
	}
}

func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := f.wait(r.Context()); err != nil {
		return nil, err
	}
	resp, err := f.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, maxJWKS)
	return resp, nil
}

// wait returns when the next fetch may begin. The key set fetches one at a time, so that callers do not queue here.
func (f *fetcher) wait(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	pause := time.NewTimer(f.interval - time.Since(f.last))
	defer pause.Stop()
	select {
	case <-pause.C:
		f.last = time.Now()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
