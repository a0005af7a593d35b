package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
)

// maxWait bounds every wait; a busy machine with two cores needs it.
const maxWait = 90 * time.Second

// installation is a running "waggle up" in a folder of its own.
type installation struct {
	dir, ws, addr, nats string
	telemetry           string
	cmd                 *exec.Cmd
	ended               chan error
	errors              *output
}

var (
	metricsLine = regexp.MustCompile(`metrics +http://(\S+)/metrics`)

	chatLine = regexp.MustCompile(`chat +(ws://(\S+)/ws)`)
	natsLine = regexp.MustCompile(`NATS +(nats://[0-9.:]+)`)
)

// start runs "waggle up" with the arguments and waits for its banner.
func start(t testing.TB, args ...string) *installation {
	t.Helper()
	i := &installation{dir: bustest.Store(t), ended: make(chan error, 1), errors: &output{}}
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
	case <-time.After(maxWait):
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
	case <-time.After(maxWait):
		t.Error("the process does not end: ", i.errors)
		return nil
	}
}

// run runs a shell command line of a document, with "waggle" being this program.
func (i *installation) run(t *testing.T, line string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
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

// page returns the text of a document of the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	require.NoError(t, err)
	return string(text)
}

func TestReadmeAndTour(t *testing.T) {
	t.Parallel()
	tour := page(t, "docs/TOUR.md")
	i := start(t)

	question := regexp.MustCompile(`(?m)^bin/waggle chat ".*"$`).FindString(page(t, "README.md"))
	require.NotEmpty(t, question)
	answer, err := i.run(t, question)
	require.NoError(t, err, answer)
	require.Contains(t, answer, "notes.md")
	notes, err := os.ReadFile(filepath.Join(i.dir, "workspace", "notes.md"))
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(notes)), "\n") {
		require.Contains(t, answer, strings.TrimSpace(line), "the answer holds what the file says")
	}

	out, err := i.run(t, regexp.MustCompile(`(?m)^bin/waggle doctor`).FindString(tour))
	require.NoError(t, err, out)
	require.NotContains(t, out, "FAIL")
	out, err = i.run(t, "waggle healthcheck")
	require.NoError(t, err, out)

	_, block, ok := strings.Cut(tour, "```frames\n")
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
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
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
