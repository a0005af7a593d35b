package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/freeport"
)

// patience bounds every wait; a busy machine with two cores needs it.
const patience = 90 * time.Second

// installation is a running "waggle up" in a folder of its own.
type installation struct {
	dir, ws, addr, nats string
	telemetry           string
	cmd                 *exec.Cmd
	ended               chan error
	errors              *strings.Builder
}

var (
	metricsLine = regexp.MustCompile(`metrics +http://(\S+)/metrics`)

	chatLine = regexp.MustCompile(`chat +(ws://(\S+)/ws)`)
	natsLine = regexp.MustCompile(`NATS +(nats://[0-9.:]+)`)
)

// start runs "waggle up" with the arguments and waits for its banner.
func start(t testing.TB, args ...string) *installation {
	t.Helper()
	i := &installation{dir: bustest.Store(t), ended: make(chan error, 1), errors: &strings.Builder{}}
	i.cmd = exec.Command("waggle", append([]string{"up", "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0"}, args...)...)
	i.cmd.Dir, i.cmd.Stderr, i.cmd.Env = i.dir, i.errors, i.env()
	out, err := i.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, i.cmd.Start())
	t.Cleanup(func() { i.end(t, syscall.SIGKILL) })
	banner := make(chan string, 1)
	go i.read(out, banner)
	select {
	case text := <-banner:
		require.Regexp(t, chatLine, text, i.errors)
		i.ws, i.addr = chatLine.FindStringSubmatch(text)[1], chatLine.FindStringSubmatch(text)[2]
		i.telemetry = metricsLine.FindStringSubmatch(text)[1]
		i.nats = natsLine.FindStringSubmatch(text)[1]
	case <-time.After(patience):
		require.Fail(t, "no banner")
	}
	return i
}

// read passes on the banner, which ends with an empty line after the commands.
func (i *installation) read(out io.Reader, banner chan<- string) {
	var text strings.Builder
	s := bufio.NewScanner(out)
	for s.Scan() {
		text.WriteString(s.Text() + "\n")
		if strings.Contains(s.Text(), "every event") {
			break
		}
	}
	banner <- text.String()
	_, _ = io.Copy(io.Discard, out)
	i.ended <- i.cmd.Wait()
}

// env is that of a newcomer, with the addresses of this installation.
func (i *installation) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + i.dir, "TMPDIR=" + os.TempDir(), "NO_COLOR=1", "GORACE=" + race,
		"WAGGLE_URL=" + i.ws, "WAGGLE_NATS=" + i.nats, "WAGGLE_ADDR=" + i.addr,
	}
}

func (i *installation) end(t testing.TB, s syscall.Signal) error {
	t.Helper()
	_ = i.cmd.Process.Signal(s)
	select {
	case err := <-i.ended:
		i.ended <- err // for the clean-up
		return err
	case <-time.After(patience):
		t.Error("the process does not end: ", i.errors)
		return nil
	}
}

// run runs a shell command line of a document, with "waggle" being this program.
func (i *installation) run(t *testing.T, line string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(line, "bin/waggle", "waggle"))
	c.Dir, c.Env = i.dir, i.env()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // with the programs that the shell has started
	out, err := c.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%s does not end: %w", line, err)
	}
	return string(out), err
}

func TestReadme(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	readme := string(page)
	i := start(t)

	question := regexp.MustCompile(`(?m)^bin/waggle chat ".*"$`).FindString(readme)
	require.NotEmpty(t, question)
	answer, err := i.run(t, question)
	require.NoError(t, err, answer)
	require.Contains(t, answer, "notes.md")
	notes, err := os.ReadFile(filepath.Join(i.dir, "workspace", "notes.md"))
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(notes)), "\n") {
		require.Contains(t, answer, strings.TrimSpace(line), "the answer holds what the file says")
	}

	out, err := i.run(t, regexp.MustCompile(`(?m)^bin/waggle doctor`).FindString(readme))
	require.NoError(t, err, out)
	require.NotContains(t, out, "FAIL")
	out, err = i.run(t, "waggle healthcheck")
	require.NoError(t, err, out)

	_, block, ok := strings.Cut(readme, "```frames\n")
	require.True(t, ok)
	block, _, _ = strings.Cut(block, "```")
	session := converse(t, i.ws, strings.Split(strings.TrimSpace(block), "\n"))

	out, err = i.run(t, "bin/waggle tail --no-follow session/"+session)
	require.NoError(t, err, out)
	for _, want := range []string{"session.created", "tool.completed", "run.completed"} {
		require.Contains(t, out, want)
	}
	out, err = i.run(t, "bin/waggle tail --json --no-follow session/"+session)
	require.NoError(t, err, out)
	for n, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var e struct{ Sequence int }
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.Equal(t, n+1, e.Sequence)
	}

	require.NoError(t, i.end(t, syscall.SIGTERM), i.errors)
}

// converse holds the conversation of the document, line by line, and returns the
// session's id.
func converse(t *testing.T, url string, lines []string) (session string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, nil) //nolint:bodyclose // Dial closes it
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	kind := regexp.MustCompile(`"type":"(\w+)"`)
	for _, line := range lines {
		direction, text, _ := strings.Cut(line, " ")
		if direction == ">" {
			require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte(text)))
			continue
		}
		_, b, err := conn.Read(ctx)
		require.NoError(t, err)
		var f struct {
			Type string
			Data struct {
				SessionID string `json:"session_id"`
			}
		}
		require.NoError(t, json.Unmarshal(b, &f))
		require.Equal(t, kind.FindStringSubmatch(text)[1], f.Type, "%s: got %s", line, b)
		if f.Data.SessionID != "" {
			session = f.Data.SessionID
		}
	}
	require.NotEmpty(t, session)
	return session
}

func TestAnInstallationSurvivesItsEnd(t *testing.T) {
	t.Parallel()
	i := start(t)
	out, err := i.run(t, `printf '2+3\n/session\n' | waggle chat`)
	require.NoError(t, err, out)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Contains(t, lines[0], "5")
	session := lines[len(lines)-1]

	// The data folder has one owner, and the port too.
	out, err = i.run(t, "waggle up --addr 127.0.0.1:0 --nats-addr 127.0.0.1:0")
	require.Error(t, err)
	require.Contains(t, out, "in use by another waggle process")
	out, err = i.run(t, "waggle up --data other --nats-addr "+strings.TrimPrefix(i.nats, "nats://"))
	require.Error(t, err)
	require.Contains(t, out, "--nats-addr")
	out, err = i.run(t, "waggle serve --role gateway")
	require.Error(t, err)
	require.Contains(t, out, "--addr")

	require.Error(t, i.end(t, syscall.SIGKILL))
	again := start(t, "--data", filepath.Join(i.dir, "data"))
	out, err = again.run(t, "waggle chat --session "+session+" '4*5'")
	require.NoError(t, err, out)
	require.Contains(t, out, "20")
	out, err = again.run(t, "waggle tail --data "+filepath.Join(i.dir, "data")+" --no-follow session/"+session)
	require.NoError(t, err, out)
	require.Equal(t, 2, strings.Count(out, "run.completed"), out)
}

func TestRolesApart(t *testing.T) {
	t.Parallel()
	i := start(t)
	addr := freeport.Addr(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := exec.CommandContext(ctx, "waggle", "serve", "--role", "gateway,worker", "--addr", addr, "--log-format", "json")
	c.Env, c.Dir = i.env(), i.dir
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	require.NoError(t, c.Start())
	require.Eventually(t, func() bool { return probe(t.Context(), addr, "/readyz") == nil }, patience, 50*time.Millisecond)
	out, err := i.run(t, "waggle chat --url ws://"+addr+"/ws '6*7'")
	require.NoError(t, err, out)
	require.Contains(t, out, "42")
	out, err = i.run(t, "waggle doctor")
	require.NoError(t, err, out)
	require.Contains(t, out, "gateway 2")
	cancel()
	_ = c.Wait() // ended by the signal, which the context reports as an error
}

func TestAPIKeysAreAskedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "waggle.yaml")
	// The hash is that of "correct horse battery staple".
	require.NoError(t, os.WriteFile(file, []byte(`
auth:
  api_keys:
    - {id: k, sha256: c4bbcb1fbec99d65bf59d85c8cb62ee2db963f0fe106f483d9afa73bd4e39a8a, subject: alice, tenant: acme, roles: [user]}
`), 0o600))
	i := start(t, "--config", file)
	out, err := i.run(t, "waggle chat hello")
	require.Error(t, err)
	require.Contains(t, out, "waggle:")
	out, err = i.run(t, "WAGGLE_TOKEN='correct horse battery staple' waggle chat '1+1'")
	require.NoError(t, err, out)
	require.Contains(t, out, "2")
	resp, err := http.Get("http://" + i.addr + "/api/v1/sessions")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
}
