package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func get(t *testing.T, p *Pages, path string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

var browser = map[string]string{"Accept": "text/html,*/*;q=0.8"}

func TestThePageAndAllThatItNames(t *testing.T) {
	t.Parallel()
	p, err := New()
	require.NoError(t, err)
	resp := get(t, p, "/", browser)
	page := resp.Body.String()
	require.Equal(t, "text/html; charset=utf-8", resp.Header().Get("Content-Type"))
	require.NotContains(t, page, "style=")
	require.NotRegexp(t, `<script(?: [^>]*)?>[^<]`, page, "the policy forbids scripts within the page")
	named := regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, named)
	for _, n := range named {
		resp := get(t, p, n[1], nil)
		require.Equal(t, http.StatusOK, resp.Code, n[1])
		if strings.HasPrefix(n[1], "/"+assets) {
			require.Contains(t, resp.Header().Get("Cache-Control"), "immutable")
		}
	}
}

func TestRoomsAreThePageForBrowsersOnly(t *testing.T) {
	t.Parallel()
	p, err := New()
	require.NoError(t, err)
	for path, want := range map[string]bool{
		"/": true, "/sessions": true, "/sessions/s1": true, "/compare": true, "/questions": true, "/teams": true, "/teams/t1": true, "/swarm": true, "/installation": true,
		"/index.html": false, "/api/v1/sessions": false, "/ws": false, "/agui": false, "/metrics": false, "/health": false, "/livez": false,
		"/assets/nothing.js": false, "/../go.mod": false, "/other": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://waggle"+path, nil)
		require.False(t, p.Serves(r) && want, "%s without Accept is for the API", path)
		r.Header.Set("Accept", browser["Accept"])
		require.Equal(t, want, p.Serves(r), path)
		r.Method = http.MethodPost
		require.False(t, p.Serves(r), path)
	}
}

// A browser at an address that nothing answers gets the page, which says so and leads back. Programs get a problem document.
func TestAPageThatDoesNotExist(t *testing.T) {
	t.Parallel()
	p, err := New()
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, "http://waggle/nonsense", nil)
	require.False(t, p.Lost(httptest.NewRecorder(), r), "no browser")
	r.Header.Set("Accept", browser["Accept"])
	r.Header.Set("If-None-Match", p.files[index].tag)
	w := httptest.NewRecorder()
	require.True(t, p.Lost(w, r))
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Equal(t, string(p.files[index].plain), w.Body.String())
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
	r.Method = http.MethodPost
	require.False(t, p.Lost(httptest.NewRecorder(), r))
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestPagesAreCompressedCachedAndGuarded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("let x = 1;\n", 500)
	p, err := load(fstest.MapFS{
		"index.html":       {Data: []byte("<!doctype html>")},
		"assets/a-1.js.gz": {Data: zipped(t, long)},
		"assets/b-1.bin":   {Data: []byte("b")},
	})
	require.NoError(t, err)
	resp := get(t, p, "/assets/a-1.js", map[string]string{"Accept-Encoding": "br, gzip"})
	require.Equal(t, "gzip", resp.Header().Get("Content-Encoding"))
	unzipped, err := gzip.NewReader(resp.Body)
	require.NoError(t, err)
	text, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	require.Equal(t, long, string(text))

	resp = get(t, p, "/assets/a-1.js", map[string]string{"If-None-Match": resp.Header().Get("ETag")})
	require.Equal(t, http.StatusNotModified, resp.Code)
	require.Equal(t, "application/octet-stream", get(t, p, "/assets/b-1.bin", nil).Header().Get("Content-Type"))

	head := get(t, p, "/sessions/s1", browser).Header()
	require.Equal(t, "no-cache", head.Get("Cache-Control"))
	require.Equal(t, "nosniff", head.Get("X-Content-Type-Options"))
	require.Equal(t, "same-origin", head.Get("Cross-Origin-Opener-Policy"))
	for _, rule := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "worker-src 'self'", "require-trusted-types-for 'script'", "trusted-types waggle-worker", "report-uri /api/v1/csp-reports"} {
		require.Contains(t, head.Get("Content-Security-Policy"), rule)
	}
	require.NotContains(t, head.Get("Content-Security-Policy"), "unsafe")
	require.Equal(t, head.Get("Content-Security-Policy"), get(t, p, "/assets/a-1.js", nil).Header().Get("Content-Security-Policy"), "a worker has the rules of its own answer")

	require.Contains(t, head.Get("Content-Security-Policy"), "connect-src 'self';")
	p, err = load(fstest.MapFS{"index.html": {}}, "https://id.example")
	require.NoError(t, err)
	require.Contains(t, get(t, p, "/login/callback", browser).Header().Get("Content-Security-Policy"), "connect-src 'self' https://id.example;")

	_, err = load(fstest.MapFS{"assets/a.js": {}})
	require.ErrorContains(t, err, "index.html is missing")
}
