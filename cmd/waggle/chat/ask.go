package chat

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// ErrNoAnswer is wrapped by the error of a question that ended without an answer.
var ErrNoAnswer = errors.New("no answer")

// Ask sends the text, shows what happens on the screen until it is answered, and
// returns nil for an answer or an error that says why there is none. With raw it
// writes the frames themselves to out instead.
func Ask(ctx context.Context, opt Options, text string, screen *terminal.Screen, stream bool, raw io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &asker{question: question{text: text}, screen: screen, view: NewView(screen, stream), raw: raw, cancel: cancel}
	link := NewLink(opt)
	link.Send(ctx, text)
	err := link.Run(ctx, a)
	screen.Close()
	switch {
	case a.done:
		return a.err
	case errors.Is(err, context.Canceled) && link.Session() != "":
		return fmt.Errorf("interrupted; the answer goes on in session %s", terminal.Line(link.Session(), 200))
	}
	return err
}

// question follows one message from its echo to its end.
type question struct {
	text      string
	execution string
	done      bool
	err       error
}

// take looks at a frame and reports whether it belongs to the question.
func (q *question) take(f Frame) bool {
	switch {
	case q.done:
		return false
	case f.Type == orbit.UserInput && q.execution == "" && decode[orbit.MessageData](f).Message == q.text:
		q.execution = f.Execution()
	case f.Type == orbit.Error && Refusal(f),
		f.Type == orbit.Error && f.Execution() == q.execution && q.execution != "":
		q.done, q.err = true, fmt.Errorf("%w: %s", ErrNoAnswer, ErrorText(f))
	case f.Type == orbit.AgentResponse && f.Execution() == q.execution && q.execution != "":
		q.done = true
	default:
		return f.Execution() == "" || f.Execution() == q.execution
	}
	return true
}

type asker struct {
	question
	screen *terminal.Screen
	view   *View
	raw    io.Writer
	cancel context.CancelFunc
}

// Frame implements Handler.
func (a *asker) Frame(f Frame) {
	mine := a.take(f)
	switch {
	case a.raw != nil:
		_, _ = a.raw.Write(append(terminal.ASCII(f.Raw), '\n'))
	case mine && f.Type != orbit.Error:
		a.view.Show(f)
	}
	if a.done {
		a.cancel()
	}
}

// Lost implements Handler.
func (a *asker) Lost(err error) {
	a.screen.Remark(terminal.Yellow, "connection lost ("+terminal.Line(err.Error(), lineWidth)+"); reconnecting")
	a.screen.Status("reconnecting")
}
