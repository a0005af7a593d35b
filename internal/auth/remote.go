package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	// fetchInterval is the least time between two fetches. A token with an invented kid causes a fetch, so that
	// without it any client could make the gateway flood the issuer; all callers that need keys at the time share the
	// fetch and wait no longer than this.
	fetchInterval = time.Second
	// fetchTimeout bounds one fetch, the wait included. It is below the ten seconds that a client has for its first
	// message.
	fetchTimeout = 8 * time.Second
	// keepLongest is how long keys count as current: with the fetch and the interval at which gateways check their sockets,
	// a key that the issuer withdraws ends within six minutes.
	keepLongest = 5 * time.Minute
	// keepShortest bounds Cache-Control: an issuer that allows no caching is asked four times a minute.
	keepShortest = 15 * time.Second
	// retryInterval is the pause after a failed fetch of old keys.
	retryInterval = 30 * time.Second
)

// remoteKeys holds the keys at a URL. It fetches them again when they are old, and when a token names an unknown one.
type remoteKeys struct {
	ctx    context.Context //nolint:containedctx // only its values
	url    string
	client *http.Client
	now    func() time.Time
	log    zerolog.Logger

	mu      sync.Mutex
	keys    []signingKey
	loaded  bool      // keys are those of a fetch
	next    time.Time // when the keys are old
	trouble string    // last logged error
	flight  *flight   // the fetch under way, or nil
}

// flight is a fetch. Everyone who needs its result shares it.
type flight struct {
	done chan struct{} // closed at the end; err is set
	err  error
}

func newRemoteKeys(ctx context.Context, address string, now func() time.Time, log zerolog.Logger) (*remoteKeys, error) {
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
	return &remoteKeys{ctx: context.WithoutCancel(ctx), url: address, client: client, now: now, log: log}, nil
}

// checkURL refuses addresses at which others could replace the keys in transit.
func checkURL(u *url.URL) error {
	if u.Hostname() != "" && (u.Scheme == "https" || u.Scheme == "http" && RequireLoopback(net.JoinHostPort(u.Hostname(), "0")) == nil) {
		return nil
	}
	return errors.New("want an https URL (or http on a loopback address)")
}

// knows reports whether the issuer published the key at the last fetch, and begins another one if that is old. Keys that were
// never fetched may all be valid.
func (k *remoteKeys) knows(key thumbprint) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.now().Before(k.next) {
		k.fetch()
	}
	return !k.loaded || contains(k.keys, key)
}

// VerifySignature implements oidc.KeySet. It asks the issuer first if the keys are old, and once more about an unknown key.
func (k *remoteKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	kid, err := keyID(jwt)
	if err != nil {
		return nil, err
	}
	keys, err := k.current(ctx)
	if err == nil {
		var payload []byte
		if payload, err = verify(ctx, keys, jwt, kid); err == nil {
			return payload, nil
		}
		if keys, err = k.newer(ctx); err == nil {
			return verify(ctx, keys, jwt, kid)
		}
	}
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		a.outage = err
	}
	return nil, err
}

// current returns the keys, those of the last fetch if the issuer does not answer now: an outage must not look like a
// revocation.
func (k *remoteKeys) current(ctx context.Context) ([]signingKey, error) {
	k.mu.Lock()
	if k.now().Before(k.next) {
		defer k.mu.Unlock()
		return k.keys, nil
	}
	f := k.fetch()
	k.mu.Unlock()
	err := f.wait(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.loaded {
		return k.keys, nil
	}
	return nil, err
}

// newer returns the keys of a fetch that ends after the call.
func (k *remoteKeys) newer(ctx context.Context) ([]signingKey, error) {
	k.mu.Lock()
	f := k.fetch()
	k.mu.Unlock()
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys, nil
}

func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fetch returns the fetch under way, or begins one. The caller holds mu.
func (k *remoteKeys) fetch() *flight {
	if k.flight != nil {
		return k.flight
	}
	f := &flight{done: make(chan struct{})}
	k.flight = f
	go func() {
		keys, keep, err := k.get()
		k.mu.Lock()
		defer k.mu.Unlock()
		k.flight, f.err = nil, err
		k.settle(keys, keep, err)
		close(f.done)
	}()
	return f
}

// settle takes the result of a fetch. After an error the old keys stay.
func (k *remoteKeys) settle(keys []signingKey, keep time.Duration, err error) {
	if err != nil {
		k.next = k.now().Add(retryInterval)
		if k.loaded && err.Error() != k.trouble {
			k.trouble = err.Error()
			k.log.Warn().Err(err).Msg("failed to fetch auth.jwt.jwks_url; previous keys stay in use")
		}
		return
	}
	if k.loaded && !sameKeys(k.keys, keys) || k.trouble != "" {
		k.log.Info().Int("keys", len(keys)).Msg("auth.jwt.jwks_url reloaded")
	}
	if len(keys) == 0 && (!k.loaded || len(k.keys) > 0) {
		k.log.Warn().Msg("auth.jwt.jwks_url has no keys; all tokens will be rejected")
	}
	k.keys, k.loaded, k.trouble, k.next = keys, true, "", k.now().Add(keep)
}

func sameKeys(a, b []signingKey) bool {
	return slices.EqualFunc(a, b, func(x, y signingKey) bool { return x.print == y.print })
}

// get asks the issuer for its keys, and returns how long they may be kept.
func (k *remoteKeys) get() ([]signingKey, time.Duration, error) {
	r, err := http.NewRequestWithContext(k.ctx, http.MethodGet, k.url, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	resp, err := k.client.Do(r)
	if err != nil {
		return nil, 0, fmt.Errorf("fetch the keys of the issuer: %w", err)
	}
	doc, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, 0, fmt.Errorf("fetch the keys of the issuer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("fetch the keys of the issuer: %s", resp.Status)
	}
	keys, err := parseJWKS(doc)
	if errors.Is(err, errNoKeys) { // the issuer says so: it withdraws all
		keys, err = nil, nil
	}
	return keys, lifetime(resp.Header), err
}

// lifetime returns how long an answer may be kept by its Cache-Control, within bounds.
func lifetime(h http.Header) time.Duration {
	keep := keepLongest
	for _, directive := range strings.Split(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-cache", "no-store":
			keep = 0
		case "max-age":
			if seconds, err := strconv.Atoi(strings.Trim(value, `"`)); err == nil && seconds < int(keepLongest/time.Second) {
				keep = min(keep, time.Duration(seconds)*time.Second)
			}
		}
	}
	return max(keep, keepShortest)
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
