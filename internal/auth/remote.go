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
	// fetchInterval is the least time between two fetches. A token with a made-up
	// kid causes a fetch, so that anybody could make us flood the issuer; all who need
	// keys at the time share the fetch and wait no longer than this.
	fetchInterval = time.Second
	// fetchTimeout bounds one fetch, the wait included. It is below the ten seconds
	// that a client has for its first message.
	fetchTimeout = 8 * time.Second
)

// remoteKeys are the keys at a URL, fetched when a token names one that is not
// known, and kept.
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

// checkURL keeps the keys from travelling where others could replace them.
func checkURL(u *url.URL) error {
	if u.Hostname() != "" && (u.Scheme == "https" || u.Scheme == "http" && RequireLoopback(net.JoinHostPort(u.Hostname(), "0")) == nil) {
		return nil
	}
	return errors.New("want an https URL (or http on a loopback address)")
}

// knows says yes: an issuer takes a key out of its set when no token that it
// signed is good any more, and asking it every few seconds is no job for a gateway.
func (*remoteKeys) knows(thumbprint) bool { return true }

func (k *remoteKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.set.VerifySignature(ctx, jwt)
	// The library has no error type for this; a test notices when the text changes.
	if err != nil && strings.HasPrefix(err.Error(), "fetching keys ") {
		if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
			a.outage = err
		}
	}
	return payload, err
}

// fetcher is a transport that is used rarely and reads little.
type fetcher struct {
	base     http.RoundTripper
	interval time.Duration

	mu   sync.Mutex
	last time.Time
}

func newFetcher() *fetcher {
	return &fetcher{
		// Fetches are hours apart: no connection is worth keeping.
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

// wait returns when the next fetch may begin. The key set fetches one at a time, so
// that nobody queues here.
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
