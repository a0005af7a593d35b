package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/orbit"
)

// Lines is where a conversation's messages come from.
type Lines interface {
	// Read returns the next line, or io.EOF after the last one.
	Read() (string, error)
	// Person reports whether a person types the lines. Otherwise a message without an answer ends
	// the conversation.
	Person() bool
	// Close gives the terminal back, even while Read waits.
	Close() error
}

// Help explains what can be entered.
const Help = `Enter sends the message. Alt-Enter, or a backslash at the end, begins another line.
The arrow keys bring earlier messages back. Ctrl-C clears what is written, else stops
the answer, else leaves; Ctrl-D leaves.
  /new      begin a new session
  /session  show the session's id ("waggle chat --session ID" continues it)
  /help     show this
  /quit     leave`

// Obey carries out a line that is a command to the conversation itself, and reports whether the
// line was one. help lists the commands. An error ends the conversation: io.EOF for good, ErrNew
// for another session. A path in front of a question counts as a message, and so does an unknown
// command that no person typed.
func Obey(screen io.Writer, line string, person bool, help, session string) (bool, error) {
	text := strings.TrimSpace(line)
	switch text {
	case "":
	case "/quit", "/exit":
		return true, io.EOF
	case "/new":
		return true, ErrNew
	case "/help":
		_, _ = fmt.Fprintln(screen, help)
	case "/session":
		_, _ = fmt.Fprintln(screen, terminal.Line(session, 200))
	default:
		if !person || !strings.HasPrefix(text, "/") || strings.ContainsAny(text[1:], "/ \n") {
			return false, nil
		}
		_, _ = fmt.Fprintln(screen, terminal.Line(text, 40)+" does not exist; /help shows the commands")
	}
	return true, nil
}

// ErrNew ends a conversation for another one, in a new session.
var ErrNew = errors.New("new session")

// Talk holds a conversation: it reads a message, shows the answer, and so on until
// the lines end. An interrupt stops the answer that is being written; another one
// ends the conversation.
func Talk(ctx context.Context, opt Options, lines Lines, screen *terminal.Screen, stream bool, interrupts <-chan os.Signal) error {
	defer screen.Close()
	defer func() { _ = lines.Close() }()
	for {
		err := converse(ctx, opt, lines, screen, stream, interrupts)
		switch {
		case errors.Is(err, ErrNew):
			opt.Session = ""
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// converse talks in one session.
func converse(ctx context.Context, opt Options, lines Lines, screen *terminal.Screen, stream bool, interrupts <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &talk{
		client: sdk.New(opt.sdk()), screen: screen, view: NewView(screen, stream), interrupts: interrupts, ended: make(chan struct{}),
		model: opt.Model, person: lines.Person(), questions: make(chan orbit.Question, maxQuestions),
	}
	go func() {
		defer close(t.ended)
		t.err = t.client.Run(ctx, t)
	}()
	defer func() { cancel(); <-t.ended; t.farewell() }()
	return socket.Explain(t.loop(lines)) // a request to the client may report the failed connection before its end does
}

type talk struct {
	client     *sdk.Client
	screen     *terminal.Screen
	view       *View
	interrupts <-chan os.Signal
	ended      chan struct{} // the client's; err is set
	err        error
	model      string
	greeted    bool
	person     bool
	asked      bool      // something, in this session
	pending    chan line // a line that is being read; nil = none is

	questions chan orbit.Question // that are open

	mu      sync.Mutex
	current *question
	over    chan error // how current ended
}

func (t *talk) loop(lines Lines) error {
	for {
		text, err := t.read(lines)
		if err != nil {
			return err
		}
		obeyed, err := Obey(t.screen, text, t.person, Help, t.client.Session())
		if err != nil {
			return err
		}
		if obeyed {
			continue
		}
		t.asked = true
		if err := t.ask(lines, strings.TrimSpace(text)); err != nil && (!t.person || !errors.Is(err, ErrNoAnswer)) {
			return err
		}
	}
}

type line struct {
	text string
	err  error
}

// read waits for a line, for the link's end or for an interrupt, which leaves.
func (t *talk) read(lines Lines) (string, error) {
	select {
	case l := <-t.typed(lines):
		t.pending = nil
		return l.text, l.err
	case <-t.ended:
		return "", t.err
	case <-t.interrupts:
		return "", io.EOF
	}
}

// typed returns the channel of the next line. Its receiver clears pending.
func (t *talk) typed(lines Lines) chan line {
	if t.pending == nil {
		got := make(chan line, 1)
		t.pending = got
		go func() {
			text, err := lines.Read()
			got <- line{text, err}
		}()
	}
	return t.pending
}

// maxQuestions bounds the open questions that a conversation remembers.
const maxQuestions = 64

// howToAnswer says how a person answers a question.
const howToAnswer = "Enter y to allow it, or anything else to refuse it."

// decide answers a question with a line: y allows, everything else refuses.
func decide(client *sdk.Client, q orbit.Question, text string) error {
	text = strings.TrimSpace(text)
	yes := strings.EqualFold(text, "y") || strings.EqualFold(text, "yes")
	if yes {
		text = ""
	}
	return client.Answer(q.ID, yes, text)
}

// ask sends the text and waits until it is answered. A person answers the questions that come meanwhile. io.EOF means
// leave.
func (t *talk) ask(lines Lines, text string) error {
	over := make(chan error, 1)
	t.mu.Lock()
	t.current, t.over = &question{text: text}, over
	t.mu.Unlock()
	t.screen.Status("sending")
	if err := t.client.Send(text); err != nil {
		return err
	}
	var open *orbit.Question
	var typed chan line
	questions := t.questions
	for stopping := false; ; {
		select {
		case err := <-over:
			return err
		case q := <-questions:
			if t.person {
				t.screen.Remark(terminal.Dim, howToAnswer)
				open, questions, typed = &q, nil, t.typed(lines)
			}
		case l := <-typed:
			t.pending = nil
			if l.err != nil {
				return l.err
			}
			if err := decide(t.client, *open, l.text); err != nil {
				return err
			}
			open, questions, typed = nil, t.questions, nil
		case <-t.ended:
			return t.err
		case <-t.interrupts:
			if stopping {
				return io.EOF
			}
			stopping = true
			t.screen.Status("stopping; Ctrl-C again leaves")
			t.client.Cancel()
		}
	}
}

// greet says where a person is.
func (t *talk) greet(f sdk.Frame) {
	if f.Type != orbit.AgentReady || t.greeted || !t.person {
		return
	}
	t.greeted = true
	t.screen.Remark(terminal.Dim, Greeting(t.model, t.client.Session()))
}

// Greeting is the first line of a conversation.
func Greeting(model, session string) string {
	if model != "" {
		model = "model " + terminal.Line(model, 60) + ", "
	}
	return model + "session " + terminal.Line(session, 60) + "; /help shows the commands"
}

// farewell prints the command that resumes the session.
func (t *talk) farewell() {
	if t.person && t.asked {
		t.screen.Remark(terminal.Dim, "waggle chat --session "+terminal.Line(t.client.Session(), 60)+" continues this session")
	}
}

// Frame implements orbit.Handler.
func (t *talk) Frame(f sdk.Frame) {
	t.view.Show(f)
	t.greet(f)
	note(t.questions, f)
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

// Lost implements orbit.Handler.
func (t *talk) Lost(err error) {
	t.screen.Remark(terminal.Yellow, "connection lost ("+terminal.Line(err.Error(), lineWidth)+"); reconnecting")
	t.screen.Status("reconnecting")
}
