//go:build site

package site

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
)

// page is a page under test, with its folder, its server and its processes.
type page struct {
	t    *testing.T
	root string // of the repository
	dir  string
	addr string
	env  []string
	own  *strings.Replacer // puts the page's addresses in place of those that it names

	steps  int
	last   *process.Process // the last command, whose output comes next
	asked  *process.Process
	answer *os.File
}

func newPage(t *testing.T, root string) *page {
	t.Helper()
	p := &page{t: t, root: root, dir: t.TempDir(), addr: freeport.Addr(t)}
	// Of a root process, programs of tool servers run as another user, who has to reach their files.
	require.NoError(t, os.Chmod(filepath.Dir(p.dir), 0o755)) //nolint:gosec // not secret
	bus, dev := freeport.Addr(t), freeport.Addr(t)
	_, devPort, _ := strings.Cut(dev, ":")
	p.own = strings.NewReplacer("127.0.0.1:9000", p.addr, "localhost:9000", p.addr, "127.0.0.1:4222", bus, "5173", devPort)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(process.Binary(t), filepath.Join(bin, "waggle")))
	require.NoError(t, os.Symlink(python(), filepath.Join(bin, "python3")))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "pgrep"), []byte(pgrep), 0o700)) //nolint:gosec // a program
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB").Output()
	require.NoError(t, err)
	golang := strings.Split(strings.TrimSpace(string(cache)), "\n")
	p.env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "PAGE=" + p.dir,
		"WAGGLE_ADDR=" + p.addr, "WAGGLE_NATS_ADDR=" + bus, "WAGGLE_NATS=nats://" + bus, "WAGGLE_URL=ws://" + p.addr + "/ws",
		"PYTHONPATH=" + filepath.Join(root, "sdk/python/src"), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "NO_COLOR=1",
		"GOWORK=off", "GOFLAGS=-mod=mod", "GOCACHE=" + golang[0], "GOMODCACHE=" + golang[1], "GOPROXY=" + golang[2], "GOSUMDB=" + golang[3],
	}
	return p
}

// python is Debian's, which has the packages that the SDK needs.
func python() string {
	if given := os.Getenv("PYTHON"); given != "" {
		return given
	}
	return "/usr/bin/python3"
}

// pgrep finds the processes of the page only: others run the same commands meanwhile.
const pgrep = `#!/bin/bash
for p in $(/usr/bin/pgrep "$@"); do
	[[ "$(readlink /proc/$p/cwd)" == "$PAGE"* ]] && echo "$p"
done
`

func (p *page) follow(blocks []Block) {
	p.t.Helper()
	for i, b := range blocks {
		b.Text = p.own.Replace(b.Text)
		after := i > 0 && blocks[i-1].Not == "" && (blocks[i-1].Lang == "sh" || blocks[i-1].Do != "")
		p.step(b, after)
	}
}

// step does what a block says. A block of text after a command is its output.
func (p *page) step(b Block, afterCommand bool) {
	p.t.Helper()
	switch {
	case b.Not != "":
	case b.Do == "type", b.Do == "wait":
		p.ends(b)
	case b.Do == "browse":
		p.browse(b)
	case b.Name != "":
		p.file(b)
	case b.Lang == "sh":
		p.shell(b)
	case b.Lang == "text" && afterCommand:
		p.printed(b)
	case b.Lang == "json":
		require.True(p.t, json.Valid([]byte(b.Text)), "line %d is not JSON", b.Line)
	case b.Lang == "text", b.Lang == "html", b.Lang == "http":
	default:
		require.Fail(p.t, "give the block a title, which makes it a file, or a reason why it is not run", "line %d", b.Line)
	}
}

func (p *page) file(b Block) {
	p.t.Helper()
	name := filepath.Join(p.dir, filepath.FromSlash(b.Name))
	require.NoError(p.t, os.MkdirAll(filepath.Dir(name), 0o755))    //nolint:gosec // not secret
	require.NoError(p.t, os.WriteFile(name, []byte(b.Text), 0o644)) //nolint:gosec // not secret
	if filepath.Base(b.Name) == "waggle.yaml" {
		c := process.Start(p.t, process.Options{Name: "config", Dir: p.dir, Args: []string{"up", "--config", b.Name, "--print-config"}})
		require.NoError(p.t, c.Wait(), "line %d: %s", b.Line, c.Output())
	}
}

// state keeps the variables, functions and folder of one block for the next.
const state = `
{ export -p; declare -f; printf 'cd %q\n' "$PWD"; } >"$PAGE/.page/state"
`

// shell runs a block in bash, or begins to.
func (p *page) shell(b Block) {
	p.t.Helper()
	script, err := Local(p.root, b.Text)
	require.NoError(p.t, err, "line %d", b.Line)
	p.steps++
	hidden := filepath.Join(p.dir, ".page")
	require.NoError(p.t, os.MkdirAll(hidden, 0o750))
	name := filepath.Join(hidden, fmt.Sprintf("%d.sh", p.steps))
	text := "[[ ! -f $PAGE/.page/state ]] || . $PAGE/.page/state\nset -a\n"
	if b.Run == "" {
		text += script + state
	} else {
		text += goesOn(script)
	}
	require.NoError(p.t, os.WriteFile(name, []byte(text), 0o600))
	stdin, answer, err := os.Pipe()
	require.NoError(p.t, err)
	c := process.Start(p.t, process.Options{
		Name: fmt.Sprintf("line %d", b.Line), Dir: p.dir, Env: p.env, Program: "bash", Args: []string{"-eu", name}, Input: stdin,
	})
	p.t.Cleanup(p.end) // before the end of this process is awaited: its children hold its output
	require.NoError(p.t, stdin.Close())
	p.last = c
	until, waits := strings.CutPrefix(b.Run, "until ")
	if waits {
		p.asked, p.answer = c, answer
		p.t.Cleanup(func() { _ = answer.Close() })
		if command := prints.FindStringSubmatch(until); command != nil {
			p.prints(c, command[1], command[2], b.Line)
		} else {
			p.appears(c, p.own.Replace(until), b.Line)
		}
		return
	}
	require.NoError(p.t, answer.Close())
	switch b.Run {
	case "":
		require.NoError(p.t, c.Wait(), "line %d: %s", b.Line, c.Output())
	case "background":
		c.Ready(p.addr)
	default:
		require.Fail(p.t, "unknown instruction", "line %d: run: %s", b.Line, b.Run)
	}
}

// goesOn replaces the shell by the last command of a block that keeps running.
func goesOn(script string) string {
	lines := strings.Split(strings.TrimRight(script, "\n"), "\n")
	lines[len(lines)-1] = "exec " + lines[len(lines)-1]
	return strings.Join(lines, "\n") + "\n"
}

// end kills what the commands of the page have left running.
func (p *page) end() {
	found, err := filepath.Glob("/proc/[0-9]*/cwd")
	require.NoError(p.t, err)
	for _, link := range found {
		if at, err := os.Readlink(link); err != nil || !strings.HasPrefix(at, p.dir) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// appears waits until a process prints a text, or ends.
func (p *page) appears(c *process.Process, text string, line int) {
	p.t.Helper()
	printed := func() bool { return strings.Contains(colours.ReplaceAllString(c.Output(), ""), text) }
	process.Eventually(p.t, fmt.Sprintf("line %d prints %q", line, text), func() bool { return printed() || ended(c) })
	require.True(p.t, printed(), "line %d has ended without %q: %s", line, text, c.Output())
}

func ended(c *process.Process) bool {
	select {
	case <-c.Ended():
		return true
	default:
		return false
	}
}

var prints = regexp.MustCompile(`^(waggle .*) prints (.*)$`)

// prints waits until another command prints a text.
func (p *page) prints(c *process.Process, command, text string, line int) {
	p.t.Helper()
	process.Eventually(p.t, fmt.Sprintf("%s prints %s", command, text), func() bool {
		asked := process.Start(p.t, process.Options{Name: command, Dir: p.dir, Env: p.env, Args: strings.Fields(command)[1:]})
		return ended(c) || asked.Wait() == nil && strings.Contains(asked.Output(), text)
	})
	require.False(p.t, ended(c), "line %d has ended: %s", line, c.Output())
}

// ends waits for the end of the last command that was left running, and types the line that it may wait for.
func (p *page) ends(b Block) {
	p.t.Helper()
	require.NotNil(p.t, p.asked, "line %d: no command waits", b.Line)
	if b.Do == "type" {
		_, err := io.WriteString(p.answer, b.Value+"\n")
		require.NoError(p.t, err)
	}
	require.NoError(p.t, p.answer.Close())
	require.NoError(p.t, p.asked.Wait(), "line %d: %s", b.Line, p.asked.Output())
	p.last = p.asked
}

func (p *page) printed(b Block) {
	p.t.Helper()
	missing := func() string { return Missing(b.Text, p.last.Output()) }
	process.Eventually(p.t, fmt.Sprintf("line %d is printed", b.Line), func() bool { return missing() == "" || ended(p.last) })
	require.Empty(p.t, missing(), "line %d: this is missing in the output:\n%s", b.Line, p.last.Output())
}

// browse opens a page in Chromium, sends a text and waits for another: URL | TEXT | TEXT.
func (p *page) browse(b Block) {
	p.t.Helper()
	args := strings.Split(p.own.Replace(b.Value), " | ")
	require.Len(p.t, args, 3, "line %d", b.Line)
	c := process.Start(p.t, process.Options{
		Name: "browser", Dir: p.dir, Program: "node", Args: append([]string{filepath.Join(p.root, "e2e/site/testdata/browse.mjs")}, args...),
	})
	require.NoError(p.t, c.Wait(), "line %d: %s", b.Line, c.Output())
}
