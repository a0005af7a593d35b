// Package console shows a conversation at a terminal: the text scrolls above, and the status and the user's unsent message
// stand below. A message may have several lines, a paste is one message, and the arrow keys recall earlier messages.
package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

// Console reads messages from a person and shows text meanwhile. It owns the terminal from Open to Close. Its methods may be
// called concurrently, Read by one goroutine at a time.
type Console struct {
	opt  Options
	prog *tea.Program
	got  chan result   // the user's entries
	done chan struct{} // closed when the program has ended; err is set
	err  error
	size atomic.Int64 // width and height of the terminal
	out  *painted

	mu      sync.Mutex
	partial string // the unfinished line on the screen
}

// Open takes control of the terminal.
func Open(opt Options) *Console {
	c := &Console{opt: opt, got: make(chan result, 1), done: make(chan struct{})}
	c.out = &painted{File: opt.Out, first: make(chan struct{})}
	m := newModel(opt, c.got, c.resized)
	c.prog = tea.NewProgram(
		m, tea.WithInput(opt.In), tea.WithOutput(c.out), tea.WithEnvironment(opt.Environ), tea.WithoutSignalHandler(),
	)
	c.resized(usualWidth, usualHeight)
	go func() {
		defer close(c.done)
		_, c.err = c.prog.Run()
	}()
	opt.Screen.Through(c)
	return c
}

// painted is a terminal that reports the first complete picture. Until then the program treats the whole terminal as its
// own: printed text would cover earlier output.
type painted struct {
	*os.File
	first chan struct{}
	once  sync.Once
}

// Write implements io.Writer. Every picture has the prompt.
func (p *painted) Write(b []byte) (int, error) {
	n, err := p.File.Write(b)
	if bytes.Contains(b, []byte(strings.TrimSpace(prompt))) {
		p.once.Do(func() { close(p.first) })
	}
	return n, err
}

func (c *Console) resized(width, height int) { c.size.Store(int64(width)<<32 | int64(height)) }

func (c *Console) dimensions() (width, height int) {
	v := c.size.Load()
	return int(v >> 32), int(v & (1<<32 - 1))
}

// Read returns the next message, or io.EOF when the user leaves.
func (c *Console) Read() (string, error) { return c.Ask()() }

// Ask makes the console accept a message: the next Enter sends one. The returned function waits for it as Read does, and is
// called once.
func (c *Console) Ask() func() (string, error) {
	c.prog.Send(wanted{}) // when it returns, every later key comes after it
	return c.answer
}

func (c *Console) answer() (string, error) {
	select {
	case r := <-c.got:
		if r.err == nil {
			c.echo(r.text)
		}
		return r.text, r.err
	case <-c.done:
		if c.err != nil && !errors.Is(c.err, tea.ErrProgramKilled) && !errors.Is(c.err, context.Canceled) {
			return "", c.err
		}
		return "", io.EOF
	}
}

// echo leaves a sent message on the screen.
func (c *Console) echo(text string) {
	lines := strings.Split(terminal.Strip(text), "\n")
	color := terminal.Color(c.opt.Out)
	for i, l := range lines {
		mark := continued
		if i == 0 {
			mark = prompt
		}
		lines[i] = terminal.Paint(color, terminal.Bold, mark+l)
	}
	_, _ = c.Write([]byte("\n" + strings.Join(lines, "\n") + "\n"))
}

// Person reports that a person writes the messages.
func (c *Console) Person() bool { return true }

// Write shows text above the unsent message. It shows an unfinished last line, too.
func (c *Console) Write(p []byte) (int, error) {
	select {
	case <-c.out.first:
	case <-c.done:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partial += strings.ReplaceAll(string(p), "\t", "    ")
	width, height := c.dimensions()
	rows := strings.Split(ansi.Wrap(c.partial, max(width-1, 1), ""), "\n")
	c.partial = rows[len(rows)-1]
	// Print only as many rows at once as fit above the message: more would leave gaps.
	for rows = rows[:len(rows)-1]; len(rows) > 0; {
		n := min(len(rows), max(height-maxRows, 1))
		c.prog.Send(tea.Println(strings.Join(rows[:n], "\n"))()) // Program.Println would wait for an ended program
		rows = rows[n:]
	}
	c.prog.Send(partial(c.partial))
	return len(p), nil
}

// Status implements terminal.Display.
func (c *Console) Status(text string) { c.prog.Send(status(text)) }

// Panel implements terminal.Display.
func (c *Console) Panel(rows []terminal.Row) { c.prog.Send(panel(rows)) }

// Close returns the terminal, even while Read waits. It may be called twice.
func (c *Console) Close() error {
	c.opt.Screen.Through(nil)
	c.prog.Send(closing{})
	<-c.done
	return nil
}
