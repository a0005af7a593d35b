// Package chat is the terminal client of the ORBIT dialect: it asks questions and shows
// the answers as they are written.
//
// A message has an id, under which it is sent again until an event of the log shows it. The pipeline service accepts an id
// once, so a lost connection neither loses nor doubles a message.
package chat

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/orbit"
)

// Options say where to connect.
type Options struct {
	URL     string // ws://HOST:PORT/ws
	Session string // session to continue; empty = a new one
	Token   string // API key or JWT; may be empty
	Model   string // that answers, for the person to read; may be empty
}

func (o Options) sdk() sdk.Options {
	return sdk.Options{URL: o.URL, Session: o.Session, Token: o.Token}
}

// ErrNoAnswer is wrapped by the error of a question that ended without an answer.
var ErrNoAnswer = errors.New("no answer")

// Ask sends the text, shows the events on the screen until the answer, and returns nil, or an error
// that says why the answer is missing. Lines answer the questions that come meanwhile; without lines, or at their end, others do.
// With raw it writes the frames to out instead.
func Ask(ctx context.Context, opt Options, text string, lines Lines, screen *terminal.Screen, stream bool, raw io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &asker{
		question: question{text: text}, screen: screen, view: NewView(screen, stream), raw: raw, cancel: cancel,
		questions: make(chan orbit.Question, maxQuestions),
	}
	client := sdk.New(opt.sdk())
	err := client.Send(text)
	if err == nil {
		if raw == nil {
			go a.answer(ctx, client, lines)
		}
		err = socket.Explain(client.Run(ctx, a))
	}
	screen.Close()
	switch {
	case a.done:
		return a.err
	case errors.Is(err, context.Canceled) && client.Session() != "":
		return fmt.Errorf("interrupted; the answer continues in session %s", terminal.Line(client.Session(), 200))
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

// take handles a frame and reports whether it belongs to the question.
func (q *question) take(f sdk.Frame) bool {
	switch {
	case q.done:
		return false
	case f.Type == orbit.UserInput && q.execution == "" && sdk.As[orbit.MessageData](f).Message == q.text:
		q.execution = f.Execution()
	case f.Type == orbit.Error && sdk.Refusal(f),
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

	questions chan orbit.Question // that are open
}

// elsewhere says where a question is answered that no line answers.
const elsewhere = "Answer it in the console (waggle open), or with: waggle top"

// answer answers questions with lines until ctx or the lines end. Without lines it says who answers the first one.
func (a *asker) answer(ctx context.Context, client *sdk.Client, lines Lines) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-a.questions:
			if lines == nil {
				a.screen.Warn(elsewhere)
				return
			}
			if lines.Person() {
				a.screen.Remark(terminal.Dim, howToAnswer)
			}
			text, err := lines.Read()
			if err == nil {
				err = decide(client, q, text)
			}
			if err != nil {
				a.screen.Warn(elsewhere)
				return
			}
		}
	}
}

// Frame implements orbit.Handler.
func (a *asker) Frame(f sdk.Frame) {
	mine := a.take(f)
	switch {
	case a.raw != nil:
		_, _ = a.raw.Write(append(terminal.ASCII(f.Raw), '\n'))
	case mine && f.Type != orbit.Error:
		a.view.Show(f)
	}
	if mine {
		note(a.questions, f)
	}
	if a.done {
		a.cancel()
	}
}

// note adds the question that a frame asks, if it asks one.
func note(questions chan<- orbit.Question, f sdk.Frame) {
	if f.Type != orbit.AgentThinking {
		return
	}
	if q := sdk.As[orbit.ThoughtData](f).Question; q != nil {
		select {
		case questions <- *q:
		default: // more than a person answers
		}
	}
}

// Lost implements orbit.Handler.
func (a *asker) Lost(err error) {
	a.screen.Remark(terminal.Yellow, "connection lost ("+terminal.Line(err.Error(), lineWidth)+"); reconnecting")
	a.screen.Status("reconnecting")
}
