package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/internal/auth"
)

// watched is a reloader of a gateway whose looks are taken by the test.
type watched struct {
	*reloader
	t    *testing.T
	file string
	log  *bytes.Buffer
}

func keysFile(keys ...string) string {
	if len(keys) == 0 {
		return "session: {ttl: 1h}\n"
	}
	var b strings.Builder
	b.WriteString("auth:\n  api_keys:\n")
	for _, k := range keys {
		_, _ = fmt.Fprintf(&b, "    - {id: %s, sha256: %s, tenant: acme}\n", k, auth.HashKey(k))
	}
	return b.String()
}

func watch(t *testing.T, text string) *watched {
	t.Helper()
	w := &watched{t: t, file: filepath.Join(t.TempDir(), "waggle.yaml"), log: &bytes.Buffer{}}
	w.write(text)
	l, err := config.Load(config.Input{File: w.file, Flags: map[string]string{"addr": "127.0.0.1:9000"}})
	require.NoError(t, err)
	p := &process{
		Options: Options{
			Config: l.Config, Source: l, Use: config.For{Roles: []string{config.RoleGateway}}, Logger: zerolog.New(w.log),
		},
		registry: prometheus.NewPedanticRegistry(),
	}
	p.auth, err = authenticator(t.Context(), p.Config, p.Logger)
	require.NoError(t, err)
	w.reloader, err = p.reloader()
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

func (w *watched) write(text string) { require.NoError(w.t, os.WriteFile(w.file, []byte(text), 0o600)) }

// looks simulates n ticks of the reloader.
func (w *watched) looks(n int) {
	for range n {
		w.look()
	}
}

// good fails the test unless the reloader accepts these keys and no other.
func (w *watched) good(keys ...string) {
	w.t.Helper()
	for _, k := range []string{"first", "second", "third"} {
		_, err := w.p.auth.Authenticate(w.t.Context(), k)
		require.Equal(w.t, strings.Contains(strings.Join(keys, " "), k), err == nil, k)
	}
}

func TestCredentialsAreReadAgain(t *testing.T) {
	w := watch(t, keysFile("first", "second"))
	w.looks(3)
	w.good("first", "second")
	require.Zero(t, testutil.ToFloat64(w.done), "nothing has changed")
	was, err := w.p.auth.Authenticate(t.Context(), "first")
	require.NoError(t, err)

	w.write(keysFile("second", "third"))
	w.looks(1)
	w.good("first", "second")
	w.looks(1)
	w.good("second", "third")
	revoker, ok := w.p.auth.(auth.Revoker)
	require.True(t, ok)
	require.True(t, revoker.Revoked(was), "who came with it has to go")
	require.InDelta(t, 1, testutil.ToFloat64(w.done), 0)
	require.NotContains(t, w.log.String(), "changed settings ignored")
	require.NotContains(t, w.log.String(), auth.HashKey("third"))
	w.looks(3)
	require.InDelta(t, 1, testutil.ToFloat64(w.done), 0)
}

// An editor writes in steps, and an intermediate file may be valid and hold fewer keys.
func TestAFileThatIsBeingWrittenIsLeftAlone(t *testing.T) {
	w := watch(t, keysFile("first", "second"))
	for _, text := range []string{"", keysFile("second"), keysFile("second", "third") + "# one more"} {
		w.write(text)
		w.looks(1)
		w.good("first", "second")
	}
	w.looks(1)
	w.good("second", "third")
}

func TestABrokenFileChangesNothing(t *testing.T) {
	w := watch(t, keysFile("first"))
	for text, why := range map[string]string{
		"auth: {api_keys: [":                     "yaml",
		"auth: {api_keys: [{id: x, shape: no}]}": "shape",
		keysFile("second", "second"):             "unique id",
		keysFile():                               "auth.api_keys",
		keysFile("second") + "shutdown: -1s\n":   "shutdown",
	} {
		w.write(text)
		w.looks(4)
		w.good("first")
		require.InDelta(t, 1, testutil.ToFloat64(w.bad), 0, text)
		require.Contains(t, w.log.String(), why)
		require.Equal(t, 1, strings.Count(w.log.String(), "configuration rejected"), "said once")
		w.write(keysFile("first"))
		w.looks(2)
		require.Zero(t, testutil.ToFloat64(w.bad), text)
		w.log.Reset()
	}
	require.InDelta(t, 5, testutil.ToFloat64(w.fails), 0)
	require.NoError(t, os.Remove(w.file))
	w.looks(2)
	w.good("first")
	require.InDelta(t, 1, testutil.ToFloat64(w.bad), 0, "a mount that is gone is no withdrawal")
	w.write(keysFile("first"))
	w.looks(1)
	require.Zero(t, testutil.ToFloat64(w.bad))
}

// A mounted Secret is a link to a link to a folder, and the middle link moves.
func TestAMountThatMoves(t *testing.T) {
	w := watch(t, keysFile("first"))
	dir := t.TempDir()
	mount := func(name, text string) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "waggle.yaml"), []byte(text), 0o600))
		require.NoError(t, os.Symlink(name, filepath.Join(dir, "tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "data")))
	}
	mount("one", keysFile("first"))
	require.NoError(t, os.Remove(w.file))
	require.NoError(t, os.Symlink(filepath.Join(dir, "data", "waggle.yaml"), w.file))
	mount("two", keysFile("third"))
	w.looks(2)
	w.good("third")
}

func TestAuthenticationIsNotSwitchedOnUnderPeople(t *testing.T) {
	w := watch(t, keysFile())
	w.write(keysFile("first"))
	w.looks(2)
	require.Contains(t, w.log.String(), errSwitch.Error())
	require.Equal(t, auth.Anonymous(), w.p.auth)
	require.InDelta(t, 1, testutil.ToFloat64(w.bad), 0)
}

func TestOtherSettingsWaitForTheNextStart(t *testing.T) {
	w := watch(t, keysFile("first"))
	w.write(keysFile("first") + "log: {level: debug}\n")
	w.looks(2)
	require.Contains(t, w.log.String(), "changed settings ignored until restart")
	require.Zero(t, testutil.ToFloat64(w.bad))
}

func TestAHangupReadsAtOnce(t *testing.T) {
	w := watch(t, keysFile("first"))
	hangup := make(chan os.Signal)
	w.p.Hangup, w.every = hangup, 1<<62
	w.write(keysFile("second"))
	require.NoError(t, w.Start(t.Context()))
	hangup <- os.Interrupt // the kind of signal does not matter
	hangup <- os.Interrupt // the reloader receives it after it has read the first
	w.good("second")
}
