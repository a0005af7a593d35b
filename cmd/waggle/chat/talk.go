package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

// Lines is where a conversation's messages come from.
type Lines interface {
	// Read returns the next line, or io.EOF after the last one.
	Read() (string, error)
	// Person reports whether somebody is typing. If not, a message without an
	// answer ends the conversation.
	Person() bool
	// Close gives the terminal back, even while Read waits.
	Close() error
}

const help = `Write a message and press Enter. Ctrl-C stops an answer, Ctrl-D leaves.
  /session  show the session's id (continue it with --session)
  /help     show this
  /quit     leave`

// Talk holds a conversation: it reads a message, shows the answer, and so on until
// the lines end. An interrupt stops the answer that is being written; another one
// ends the conversation.
func Talk(ctx context.Context, opt Options, lines Lines, screen *terminal.Screen, stream bool, interrupts <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &talk{link: NewLink(opt), screen: screen, view: NewView(screen, stream), interrupts: interrupts, ended: make(chan struct{})}
	defer screen.Close()
	go func() {
		defer close(t.ended)
		t.err = t.link.Run(ctx, t)
	}()
	defer func() { cancel(); <-t.ended; _ = lines.Close() }()
	if err := t.loop(ctx, lines); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

type talk struct {
	link       *Link
	screen     *terminal.Screen
	view       *View
	interrupts <-chan os.Signal
	ended      chan struct{} // the link's; err is set
	err        error

	mu      sync.Mutex
	current *question
	over    chan error // how current ended
}

func (t *talk) loop(ctx context.Context, lines Lines) error {
	for {
		text, err := t.read(lines)
		if err != nil {
			return err
		}
		switch text = strings.TrimSpace(text); text {
		case "":
		case "/quit", "/exit":
			return nil
		case "/help":
			t.print(help)
		case "/session":
			t.print(terminal.Line(t.link.Session(), 200))
		default:
			if err := t.ask(ctx, text); err != nil && (!lines.Person() || !errors.Is(err, ErrNoAnswer)) {
				return err
			}
		}
	}
}

func (t *talk) print(text string) { _, _ = fmt.Fprintln(t.screen, text) }

type line struct {
	text string
	err  error
}

// read waits for a line, for the link's end or for an interrupt, which leaves.
func (t *talk) read(lines Lines) (string, error) {
	got := make(chan line, 1)
	go func() {
		text, err := lines.Read()
		got <- line{text, err}
	}()
	select {
	case l := <-got:
		return l.text, l.err
	case <-t.ended:
		return "", t.err
	case <-t.interrupts:
		return "", io.EOF
	}
}

// ask sends the text and waits until it is answered. io.EOF means leave.
func (t *talk) ask(ctx context.Context, text string) error {
	over := make(chan error, 1)
	t.mu.Lock()
	t.current, t.over = &question{text: text}, over
	t.mu.Unlock()
	t.screen.Status("sending")
	t.link.Send(ctx, text)
	for stopping := false; ; stopping = true {
		select {
		case err := <-over:
			return err
		case <-t.ended:
			return t.err
		case <-t.interrupts:
			if stopping {
				return io.EOF
			}
			t.screen.Status("stopping; Ctrl-C again leaves")
			t.link.Cancel(ctx)
		}
	}
}

// Frame implements Handler.
func (t *talk) Frame(f Frame) {
	t.view.Show(f)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return
	}
	t.current.take(f)
	if t.current.done {
		t.over <- t.current.err
		t.current = nil
	}
}

// Lost implements Handler.
func (t *talk) Lost(err error) {
	t.screen.Remark(terminal.Yellow, "connection lost ("+terminal.Line(err.Error(), lineWidth)+"); reconnecting")
	t.screen.Status("reconnecting")
}
