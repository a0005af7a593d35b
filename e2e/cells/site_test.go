package cells_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/gateway/forward"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/freeport"
)

// TestMain ends the installation that tests share, and looks for secrets in what the processes have printed.
func TestMain(m *testing.M) {
	code := m.Run()
	if !shared.End() && code == 0 {
		code = 1
	}
	os.Exit(process.Audit(code))
}

// Keys of the users: each tenant has one.
const (
	redKey  = process.Canary + "-red"
	blueKey = process.Canary + "-blue"
)

// site is an installation of two cells, "a" and "b", each with its gateway and its services in one process.
type site struct {
	t       testing.TB
	control *bustest.Instance
	cells   map[string]*cellProcess
}

type cellProcess struct {
	*process.Process
	addr, file, dir string
}

// shared is the installation of the tests that break nothing: a serves red, b serves blue.
var shared struct {
	process.Shared
	site *site
}

// sharedSite returns the installation for a test.
func sharedSite(t *testing.T) *site {
	t.Helper()
	shared.Begin(t, func() {
		s := newSite(&shared.Shared)
		require.Contains(t, s.command("a", "cells", "assign", "blue", "b"), "b serves blue")
		s.settled()
		shared.site = s
	})
	return &site{t: t, control: shared.site.control, cells: shared.site.cells}
}

// newSite starts an installation. Its control cluster is a NATS server of the test.
func newSite(t testing.TB) *site {
	t.Helper()
	control := bustest.Start(t, bus.DefaultTopology())
	signing := t.TempDir()
	_, err := keys.EnsureSigning(signing)
	require.NoError(t, err)
	s := &site{t: t, control: control, cells: map[string]*cellProcess{}}
	for _, name := range []string{"a", "b"} {
		c := &cellProcess{addr: freeAddr(t), dir: t.TempDir()}
		c.file = filepath.Join(c.dir, "waggle.yaml")
		nats := freeAddr(t)
		text := fmt.Sprintf(`addr: %s
data: %s/data
workspace: %s/workspace
nats: {addr: "%s", url: "nats://%s"}
telemetry: {addr: "off"}
gateway: {trusted_proxies: [127.0.0.1], message_rate: 1000, message_burst: 1000}
signing: {key_file: %q, public_key_file: %q}
cells: {name: %s, control: %q, default: a}
auth:
  api_keys:
    - {id: red, sha256: %s, tenant: red, roles: [user]}
    - {id: blue, sha256: %s, tenant: blue, roles: [user]}
`, c.addr, c.dir, c.dir, nats, nats, keys.SigningFile(signing), keys.SigningPublicFile(signing), name, control.URL, auth.HashKey(redKey), auth.HashKey(blueKey))
		require.NoError(t, os.WriteFile(c.file, []byte(text), 0o600))
		s.cells[name] = c
	}
	for name, c := range s.cells {
		c.Process = process.Start(t, process.Options{Name: "cell " + name, Dir: c.dir, Args: []string{"up", "--config", c.file}})
	}
	for _, c := range s.cells {
		c.Ready(c.addr)
	}
	return s
}

// freeAddr returns an address of this machine that no other test uses.
func freeAddr(t testing.TB) string {
	t.Helper()
	port, release, err := freeport.Reserve()
	require.NoError(t, err)
	t.Cleanup(release)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// command runs a command of the binary with the settings of a cell, and returns what it printed.
func (s *site) command(cell string, args ...string) string {
	s.t.Helper()
	p := process.Start(s.t, process.Options{Name: "waggle " + args[1], Args: append(args, "--config", s.cells[cell].file)})
	require.NoError(s.t, p.Wait(), "%v: %s", args, p.Output())
	return p.Output()
}

// answer is an answer over HTTP.
type answer struct {
	status int
	after  string // Retry-After
	title  string // the code of a fault
	body   string
}

// ask sends a request to the gateway of a cell.
func (s *site) ask(cell, key, method, path string) answer {
	s.t.Helper()
	return s.send(cell, method, path, http.Header{"Authorization": {"Bearer " + key}})
}

// claim asks for the sessions of a user, as if another gateway had forwarded the request.
func (s *site) claim(cell, key string) answer {
	s.t.Helper()
	return s.send(cell, http.MethodGet, "/api/v1/sessions", http.Header{"Authorization": {"Bearer " + key}, forward.HeaderCell: {cell}})
}

// settled waits until both gateways know that b serves blue.
func (s *site) settled() {
	s.t.Helper()
	for cell, status := range map[string]int{"a": http.StatusServiceUnavailable, "b": http.StatusOK} {
		process.Eventually(s.t, "the directory of "+cell, func() bool { return s.claim(cell, blueKey).status == status })
	}
}

func (s *site) send(cell, method, path string, head http.Header) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.cells[cell].addr+path, http.NoBody)
	require.NoError(s.t, err)
	r.Header = head
	resp, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	var problem struct {
		Title string `json:"title"`
	}
	_ = json.Unmarshal(body, &problem) // not every answer is a problem
	return answer{resp.StatusCode, resp.Header.Get("Retry-After"), problem.Title, string(body)}
}
