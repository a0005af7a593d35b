// Package consoletest provides a terminal for tests: a real pseudo terminal whose other end sends keys and keeps the screen
// that a person would see.
package consoletest

import (
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"github.com/stretchr/testify/require"
)

// Keys as terminals send them.
const (
	Enter    = "\r"
	AltEnter = "\x1b\r"
	CtrlC    = "\x03"
	CtrlD    = "\x04"
	Up       = "\x1b[A"
	Down     = "\x1b[B"
)

// Paste returns the input that a terminal sends for a paste.
func Paste(text string) string { return "\x1b[200~" + text + "\x1b[201~" }

// maxWait bounds a test's wait for a screen.
const maxWait = time.Minute

// Terminal is a terminal of a test. TTY is the program's end.
type Terminal struct {
	TTY *os.File

	t    testing.TB
	pty  *os.File
	vt   vt10x.Terminal
	done chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	over    bool
}

// Open returns a terminal of the size, and closes it at the end of the test.
func Open(t testing.TB, rows, columns int) *Terminal {
	t.Helper()
	ptmx, tty, err := pty.Open()
	require.NoError(t, err)
	//nolint:gosec // tests have small terminals
	require.NoError(t, pty.Setsize(ptmx, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}))
	x := &Terminal{TTY: tty, t: t, pty: ptmx, vt: vt10x.New(vt10x.WithSize(columns, rows)), done: make(chan struct{})}
	x.changed = sync.NewCond(&x.mu)
	go x.watch()
	t.Cleanup(func() {
		_ = tty.Close()
		_ = ptmx.Close()
		<-x.done
	})
	return x
}

// Environ returns the environment of a program at the terminal.
func Environ() []string { return []string{"TERM=screen-256color"} }

var (
	// foreign matches sequences that the emulator misreads: keyboard protocols.
	foreign = regexp.MustCompile(`\x1b\[[<=>?][0-9;]*(u|m)`)
	// begun matches a sequence that has not ended.
	begun = regexp.MustCompile(`\x1b(\[[0-9;<=>?$ ]*)?$`)
)

// watch passes the program's output to the emulator.
func (x *Terminal) watch() {
	defer close(x.done)
	buf := make([]byte, 64<<10)
	rest := ""
	for {
		n, err := x.pty.Read(buf)
		text := rest + string(buf[:n])
		at := len(text)
		if loc := begun.FindStringIndex(text); loc != nil && err == nil {
			at = loc[0]
		}
		text, rest = text[:at], text[at:]
		x.mu.Lock()
		_, _ = x.vt.Write([]byte(foreign.ReplaceAllString(text, "")))
		x.over = x.over || err != nil
		x.changed.Broadcast()
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Type sends keys.
func (x *Terminal) Type(keys ...string) {
	x.t.Helper()
	_, err := x.pty.WriteString(strings.Join(keys, ""))
	require.NoError(x.t, err)
}

// Rows returns the rows of the screen without the empty rows at the end.
func (x *Terminal) Rows() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rows()
}

func (x *Terminal) rows() []string {
	rows := strings.Split(x.vt.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	return rows
}

// Wait waits until one row of the screen holds the text.
func (x *Terminal) Wait(text string) {
	x.t.Helper()
	x.Until(text, func(rows []string) bool { return strings.Contains(strings.Join(rows, "\n"), text) })
}

// bold is the mode of bold cells.
const bold = 1 << 2

// Ready waits until Enter sends the unsent message: its prompt is bold then. Earlier an Enter has no effect. After an Enter,
// the screen may still show the prompt of before: Submit waits for the next one.
func (x *Terminal) Ready() {
	x.t.Helper()
	x.Until("a bold prompt", func(rows []string) bool {
		y := x.prompt(rows)
		return y >= 0 && x.vt.Cell(0, y).Mode&bold != 0
	})
}

// Submit types the rest of a message, and sends the message with Enter as soon as the screen shows it and Enter sends it.
// message is the first line of the whole. When Submit returns, the screen shows the prompt of the next message.
func (x *Terminal) Submit(rest, message string) {
	x.t.Helper()
	x.Type(rest)
	shows := func(rows []string) bool {
		y := x.prompt(rows)
		return y >= 0 && rows[y] == "› "+message
	}
	x.Until("the message "+message, shows)
	x.Ready()
	x.Type(Enter)
	x.Until("the message "+message+" above the prompt", func(rows []string) bool { return x.prompt(rows) >= 0 && !shows(rows) })
}

// prompt returns the row of the unsent message, or -1 while the program draws. Sent messages stand above that row.
func (x *Terminal) prompt(rows []string) int {
	for y := len(rows) - 1; y >= 0 && x.vt.CursorVisible(); y-- {
		if x.vt.Cell(0, y).Char == '›' {
			return y
		}
	}
	return -1
}

// Until waits until the screen meets the condition.
func (x *Terminal) Until(what string, met func(rows []string) bool) {
	x.t.Helper()
	timer := time.AfterFunc(maxWait, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.over = true
		x.changed.Broadcast()
	})
	defer timer.Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	for !met(x.rows()) {
		if x.over {
			require.FailNow(x.t, "the screen does not show: "+what, strings.Join(x.rows(), "\n"))
		}
		x.changed.Wait()
	}
}

// Print writes to the terminal, like a program that ran before.
func (x *Terminal) Print(text string) {
	x.t.Helper()
	_, err := x.TTY.WriteString(text)
	require.NoError(x.t, err)
}
