package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// issuer serves a key set that the test changes.
type issuer struct {
	*httptest.Server
	mu      sync.Mutex
	body    []byte
	status  int
	fetches int
	cache   string // Cache-Control
}

func newIssuer(t *testing.T, body []byte) *issuer {
	i := &issuer{body: body, status: http.StatusOK}
	i.Server = httptest.NewServer(i)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fetches++
	w.Header().Set("Content-Type", "application/json")
	if i.cache != "" {
		w.Header().Set("Cache-Control", i.cache)
	}
	w.WriteHeader(i.status)
	_, _ = w.Write(i.body)
}

func (i *issuer) serve(status int, body []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.status, i.body = status, body
}

func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// The issuer signs with a new key, and removes the old one later.
func TestRotationAtAURL(t *testing.T) {
	first, second := newSigner(t, "k1", jwt.SigningMethodES256), newSigner(t, "k2", jwt.SigningMethodES256)
	server := newIssuer(t, keySet(t, first))
	a := newAuth(t, jwtConfig(func(j *JWTConfig) { j.JWKSURL = server.URL }))
	for range 3 {
		_, err := a.Authenticate(t.Context(), first.mint(t, nil))
		require.NoError(t, err)
	}
	require.Equal(t, 1, server.count(), "keys are kept")

	server.serve(http.StatusOK, keySet(t, first, second))
	_ = answers(t, a, second.mint(t, nil), code(nil))
	p, err := a.Authenticate(t.Context(), second.mint(t, nil))
	require.NoError(t, err)
	require.Equal(t, 2, server.count())
	require.False(t, a.(Revoker).Revoked(p))

	server.serve(http.StatusOK, keySet(t, second))
	unknown := newSigner(t, "k3", jwt.SigningMethodES256).mint(t, nil)
	for server.count() < 3 {
		_ = answers(t, a, unknown, fault.Unauthenticated)
	}
	_ = answers(t, a, first.mint(t, nil), fault.Unauthenticated)
}

// answers asks until a token is answered with a code ("<nil>": accepted): a fetch that began before a change of the keys may
// answer the first try.
func answers(t *testing.T, a Authenticator, token string, want fault.Code) (err error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if _, err = a.Authenticate(t.Context(), token); code(err) == want {
			return err
		}
	}
	require.FailNow(t, "the answer does not change", "want %s, have %v", want, err)
	return nil
}

// A client does not cause the failure of its issuer: it may try again. Tokens of known keys are accepted all the
// while.
func TestAnOutageOfTheIssuer(t *testing.T) {
	s, unknown := newSigner(t, "k1", jwt.SigningMethodES256), newSigner(t, "k2", jwt.SigningMethodES256)
	server := newIssuer(t, keySet(t, s))
	a := newAuth(t, jwtConfig(func(j *JWTConfig) { j.JWKSURL = server.URL }))
	_, err := a.Authenticate(t.Context(), s.mint(t, nil))
	require.NoError(t, err)

	for name, breakIt := range map[string]func(){
		"500":        func() { server.serve(http.StatusInternalServerError, nil) },
		"not JSON":   func() { server.serve(http.StatusOK, []byte("<html>")) },
		"much":       func() { server.serve(http.StatusOK, bytes.Repeat([]byte(" "), maxJWKS+1)) },
		"redirected": func() { server.serve(http.StatusFound, nil) },
	} {
		breakIt()
		token := unknown.mint(t, nil)
		err = answers(t, a, token, fault.Internal)
		require.True(t, fault.From(err, "").Retryable())
		leaksNothing(t, err, token)
		_, err = a.Authenticate(t.Context(), s.mint(t, nil))
		require.NoError(t, err, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Authenticate(ctx, unknown.mint(t, nil))
	require.Equal(t, fault.Internal, code(err))
	server.serve(http.StatusOK, keySet(t, s, unknown))
	_ = answers(t, a, unknown.mint(t, nil), code(nil))
}

// Tokens with invented keys do not flood the issuer: concurrent ones share a fetch, and a pause separates two
// fetches.
func TestFetchesAreFewHoweverManyTokens(t *testing.T) {
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	server := newIssuer(t, keySet(t, s))
	a := newAuth(t, jwtConfig(func(j *JWTConfig) { j.JWKSURL = server.URL }))
	began := time.Now()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			fake := &signer{kid: rand.Text(), method: s.method, key: s.key}
			for range 3 {
				_, err := a.Authenticate(t.Context(), fake.mint(t, nil))
				if code(err) != fault.Unauthenticated {
					t.Errorf("want a refusal, have %v", err)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, server.count(), 1+int(time.Since(began)/fetchInterval))
}

// A key that its issuer withdraws ends within five minutes and a fetch: for new connections and for those that are open.
func TestWithdrawnKeysEnd(t *testing.T) {
	first, second := newSigner(t, "k1", jwt.SigningMethodES256), newSigner(t, "k2", jwt.SigningMethodES256)
	for name, c := range map[string]struct {
		cache string
		keep  time.Duration
	}{
		"usual":          {"", keepLongest},
		"kept for hours": {"public, max-age=86400", keepLongest},
		"a minute":       {"max-age=60, must-revalidate", time.Minute},
		"not kept":       {"no-store", keepShortest},
		"at once":        {"max-age=0", keepShortest},
		"malformed":      {"max-age=x", keepLongest},
		"beyond numbers": {"max-age=99999999999999999999", keepLongest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withdrawn(t, first, second, c.cache, c.keep)
		})
	}
}

// An issuer whose key set is empty, or has nothing to sign with, withdraws all keys. Anything else that it answers withdraws none.
func TestAnEmptyKeySetWithdrawsAll(t *testing.T) {
	s := newSigner(t, "k1", jwt.SigningMethodES256)
	forEncryption := bytes.ReplaceAll(keySet(t, s), []byte(`"use":"sig"`), []byte(`"use":"enc"`))
	for set, gone := range map[string]bool{
		`{"keys":[]}`: true, `{"keys":[{"kty":"NEW"}]}`: true, string(forEncryption): true,
		`{}`: false, `{"keys":null}`: false, `[]`: false, ``: false,
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			server := newIssuer(t, keySet(t, s))
			var now atomic.Pointer[time.Time]
			begun, old := noon, noon.Add(keepLongest)
			now.Store(&begun)
			conf := jwtConfig(func(j *JWTConfig) { j.JWKSURL = server.URL })
			conf.Now = func() time.Time { return *now.Load() }
			a := newAuth(t, conf)
			p, err := a.Authenticate(t.Context(), s.mint(t, nil))
			require.NoError(t, err)
			server.serve(http.StatusOK, []byte(set))
			now.Store(&old)
			_, err = a.Authenticate(t.Context(), s.mint(t, nil)) // after another fetch
			require.Equal(t, gone, err != nil, "%v", err)
			require.Equal(t, gone, a.(Revoker).Revoked(p))
			if gone {
				require.Equal(t, fault.Unauthenticated, code(err))
				server.serve(http.StatusOK, keySet(t, s))
				_ = answers(t, a, s.mint(t, nil), code(nil))
			}
		})
	}
}

func withdrawn(t *testing.T, first, second *signer, cache string, keep time.Duration) {
	server := newIssuer(t, keySet(t, first, second))
	server.cache = cache
	var now atomic.Pointer[time.Time]
	move := func(to time.Time) { now.Store(&to) }
	move(noon)
	conf := jwtConfig(func(j *JWTConfig) { j.JWKSURL = server.URL })
	conf.Now = func() time.Time { return *now.Load() }
	a := newAuth(t, conf)
	p, err := a.Authenticate(t.Context(), first.mint(t, nil))
	require.NoError(t, err)

	server.serve(http.StatusOK, keySet(t, second))
	move(noon.Add(keep - time.Millisecond))
	require.False(t, a.(Revoker).Revoked(p))
	_, err = a.Authenticate(t.Context(), first.mint(t, nil))
	require.NoError(t, err)
	require.Equal(t, 1, server.count())

	// An issuer that does not answer withdraws nothing.
	server.serve(http.StatusInternalServerError, nil)
	move(noon.Add(keep))
	_, err = a.Authenticate(t.Context(), first.mint(t, nil))
	require.NoError(t, err)
	require.Equal(t, 2, server.count())
	require.False(t, a.(Revoker).Revoked(p))

	server.serve(http.StatusOK, keySet(t, second))
	move(noon.Add(keep + retryInterval))
	require.Eventually(t, func() bool { return a.(Revoker).Revoked(p) }, time.Minute, time.Millisecond)
	_, err = a.Authenticate(t.Context(), first.mint(t, nil))
	require.Equal(t, fault.Unauthenticated, code(err))
	_, err = a.Authenticate(t.Context(), second.mint(t, nil))
	require.NoError(t, err)
}
