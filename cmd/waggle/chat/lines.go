package chat

import (
	"bufio"
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

// maxLine bounds a message read from a pipe: as large as the gateway takes.
const maxLine = 256 << 10

// Piped reads messages from a file or pipe, one a line.
func Piped(r io.Reader) Lines {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	return &piped{s}
}

type piped struct{ s *bufio.Scanner }

func (p *piped) Read() (string, error) {
	if p.s.Scan() {
		return p.s.Text(), nil
	}
	if err := p.s.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}

func (p *piped) Person() bool { return false }

func (p *piped) Close() error { return nil }

// Editor reads messages from a terminal, with line editing and a history. The
// terminal is in raw mode only while a line is read, so that Ctrl-C is a signal
// at all other times.
func Editor(in, out *os.File, screen *terminal.Screen) Lines {
	rw := struct {
		io.Reader
		io.Writer
	}{in, out}
	prompt := terminal.Paint(terminal.Color(out), terminal.Bold, "› ")
	return &editor{in: in, out: out, screen: screen, term: term.NewTerminal(rw, prompt)}
}

type editor struct {
	in, out *os.File
	screen  *terminal.Screen
	term    *term.Terminal

	mu    sync.Mutex
	state *term.State // of the terminal before raw mode; nil outside of it
}

// Read implements Lines. Ctrl-C and Ctrl-D are its end.
func (e *editor) Read() (string, error) {
	if err := e.raw(); err != nil {
		return "", err
	}
	defer func() { _, _ = e.restore() }()
	text, err := e.term.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return text, err
}

// Person implements Lines.
func (e *editor) Person() bool { return true }

func (e *editor) raw() error {
	state, err := term.MakeRaw(int(e.in.Fd()))
	if err != nil {
		return err
	}
	if w, h, err := term.GetSize(int(e.out.Fd())); err == nil {
		_ = e.term.SetSize(w, h) // fails for sizes that no terminal has
	}
	e.mu.Lock()
	e.state = state
	e.mu.Unlock()
	e.screen.Edit(e.term)
	return nil
}

// Close implements Lines. It leaves the line that is being edited behind.
func (e *editor) Close() error {
	was, err := e.restore()
	if was {
		_, _ = io.WriteString(e.out, "\n")
	}
	return err
}

// restore ends raw mode and reports whether it was on.
func (e *editor) restore() (was bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == nil {
		return false, nil
	}
	e.screen.Edit(nil)
	state := e.state
	e.state = nil
	return true, term.Restore(int(e.in.Fd()), state)
}
