package console_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/waggle-dev/waggle/cmd/waggle/console"
	"github.com/waggle-dev/waggle/cmd/waggle/console/consoletest"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

const placeholder = "say something"

type rig struct {
	*consoletest.Terminal
	t          *testing.T
	console    *console.Console
	screen     *terminal.Screen
	interrupts chan os.Signal
}

// open opens a console with the file's history, and waits for its prompt.
func open(t *testing.T, x *consoletest.Terminal, history string) *rig {
	t.Helper()
	h, err := console.OpenHistory(history)
	require.NoError(t, err)
	r := &rig{Terminal: x, t: t, screen: terminal.NewScreen(x.TTY, x.TTY), interrupts: make(chan os.Signal, 1)}
	r.console = console.Open(console.Options{
		In: x.TTY, Out: x.TTY, Environ: consoletest.Environ(), History: h, Placeholder: placeholder,
		Interrupts: r.interrupts, Screen: r.screen,
	})
	t.Cleanup(func() { _ = r.console.Close() })
	x.Wait("› " + placeholder)
	return r
}

// read asks for a message and returns a channel that receives it.
func (r *rig) read() <-chan string {
	out := make(chan string, 1)
	wait := r.console.Ask()
	go func() {
		text, err := wait()
		if err != nil {
			text = err.Error()
		}
		out <- text
	}()
	return out
}

func TestAPasteIsOneMessage(t *testing.T) {
	r := open(t, consoletest.Open(t, 24, 80), "")
	got := r.read()
	r.Type(consoletest.Paste("first\r\nsecond\rthird\nfourth"))
	r.Wait("› first\n  second\n  third\n  fourth")
	r.Type(consoletest.Enter)
	require.Equal(t, "first\nsecond\nthird\nfourth", <-got)
	r.Wait("› first\n  second\n  third\n  fourth\n\n› " + placeholder)
}

func TestAPasteOfManyLinesIsWhole(t *testing.T) {
	r := open(t, consoletest.Open(t, 24, 80), "")
	got := r.read()
	lines := make([]string, 500)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d", i)
	}
	r.Type(consoletest.Paste(strings.Join(lines, "\n")))
	r.Wait("line 499")
	r.Type(consoletest.Enter)
	require.Equal(t, strings.Join(lines, "\n"), <-got)
}

func TestAMessageOfSeveralLines(t *testing.T) {
	r := open(t, consoletest.Open(t, 24, 80), "")
	got := r.read()
	r.Type("one", consoletest.AltEnter, `two\`, consoletest.Enter, "three")
	r.Wait("› one\n  two\n  three")
	r.Type(consoletest.Enter)
	require.Equal(t, "one\ntwo\nthree", <-got)
}

func TestEarlierMessagesComeBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "history")
	r := open(t, consoletest.Open(t, 24, 80), file)
	for _, m := range []string{"one", "two"} {
		got := r.read()
		r.Type(m, consoletest.Enter)
		require.Equal(t, m, <-got)
	}
	require.NoError(t, r.console.Close())
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "others may not read it")

	r = open(t, consoletest.Open(t, 24, 80), file)
	got := r.read()
	r.Type("new", consoletest.Up)
	r.Wait("› two")
	r.Type(consoletest.Up)
	r.Wait("› one")
	r.Type(consoletest.Up, consoletest.Down, consoletest.Down)
	r.Wait("› new")
	r.Type(consoletest.Up, "!", consoletest.Enter)
	require.Equal(t, "two!", <-got)
}

func TestCtrlCClearsWhatIsWritten(t *testing.T) {
	r := open(t, consoletest.Open(t, 24, 80), "")
	got := r.read()
	r.Type("wrong")
	r.Wait("› wrong")
	r.Type(consoletest.CtrlC)
	r.Wait("› " + placeholder)
	require.Empty(t, r.interrupts)
	r.Type(consoletest.CtrlC)
	require.Equal(t, os.Interrupt, <-r.interrupts)
	r.Type("right", consoletest.Enter)
	require.Equal(t, "right", <-got)
}

func TestCtrlDLeaves(t *testing.T) {
	r := open(t, consoletest.Open(t, 24, 80), "")
	got := r.read()
	r.Type(consoletest.CtrlD)
	require.Equal(t, io.EOF.Error(), <-got)
}

// A message that the user writes while text arrives stays separate, complete and unsent.
func TestTextDoesNotMixWithWhatIsWritten(t *testing.T) {
	r := open(t, consoletest.Open(t, 24, 40), "")
	r.Type("my question")
	r.Wait("› my question")
	r.screen.Status("thinking")
	r.Wait("thinking\n\n› my question")
	for word := range strings.SplitSeq("The answer is longer than one row of this terminal is.\nAnd has a second paragraph", " ") {
		_, _ = r.screen.Write([]byte(word + " "))
		r.Type(".")
	}
	dots := strings.Repeat(".", 15)
	r.Type(consoletest.Enter)
	r.Wait("The answer is longer than one row of\nthis terminal is.\nAnd has a second paragraph")
	r.Wait("› my question" + dots + "\n  the answer is not finished")
	got := r.read()
	r.Type(consoletest.Enter)
	require.Equal(t, "my question"+dots, <-got)
}

func TestWhatStandsOnTheScreenStays(t *testing.T) {
	x := consoletest.Open(t, 24, 80)
	x.Print("$ make run\r\n$ waggle chat\r\n")
	r := open(t, x, "")
	r.screen.Remark(terminal.Dim, "hello")
	r.Wait("$ make run\n$ waggle chat\nhello\n\n› " + placeholder)
	for i := range 40 {
		_, _ = fmt.Fprintf(r.screen, "row %d\n", i)
	}
	r.Wait("row 38\nrow 39\n\n› " + placeholder)
	_, _ = r.screen.Write([]byte(strings.Repeat("long text\n", 100) + "the end"))
	r.Until("no gap", func(rows []string) bool {
		return len(rows) == 24 && rows[0] == "long text" && rows[20] == "long text" && rows[21] == "the end"
	})
}

func TestThePanelIsAboveTheMessage(t *testing.T) {
	r := open(t, consoletest.Open(t, 24, 80), "")
	r.screen.Panel([]terminal.Row{{Style: terminal.Bold, Text: "team\x1b[2J"}, {Text: strings.Repeat("x", 100)}})
	r.Wait("team\n" + strings.Repeat("x", 78) + "…\n\n› " + placeholder)
	r.screen.Note(terminal.Plain, "news")
	r.Wait("news\nteam\n")
	r.screen.Panel(nil)
	r.Wait("news\n\n› " + placeholder)
}

func TestTheTerminalIsGivenBack(t *testing.T) {
	x := consoletest.Open(t, 24, 80)
	before, err := term.GetState(int(x.TTY.Fd()))
	require.NoError(t, err)
	r := open(t, x, "")
	got := r.read()
	require.NoError(t, r.console.Close())
	require.NoError(t, r.console.Close())
	require.Equal(t, io.EOF.Error(), <-got, "Read ends")
	after, err := term.GetState(int(x.TTY.Fd()))
	require.NoError(t, err)
	require.Equal(t, before, after)
	r.screen.Note(terminal.Plain, "after")
	r.Until("no prompt", func(rows []string) bool { return len(rows) == 1 && rows[0] == "after" })
}
