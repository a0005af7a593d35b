// Package planchat is the terminal's view of runs that plan: it shows the plan,
// asks whether it is to be carried out, shows how its tasks get on and streams the
// answer that is made of them.
package planchat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/chat"
	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// Options say what to talk about.
type Options struct {
	sdk.Options
	Text       string    // the one question; empty = the lines are a conversation
	Stream     bool      // show the answer as it is written
	Raw        io.Writer // write the frames themselves here instead; may be nil
	Interrupts <-chan os.Signal
	Model      string // that answers, for the person to read; may be empty
}

// Talk asks the question, or one after the other, and returns at the answer or the end of the
// lines. It reads decisions on plans from the lines, too. An interrupt stops the active run; a
// second one leaves.
func Talk(ctx context.Context, opt Options, lines chat.Lines, screen *terminal.Screen) error {
	defer screen.Close()
	reader := newReader(lines)
	for {
		err := converse(ctx, opt, reader, screen)
		switch {
		case errors.Is(err, chat.ErrNew):
			opt.Session = ""
			continue
		case errors.Is(err, io.EOF):
			err = nil
		}
		return errors.Join(err, lines.Close())
	}
}

// converse talks in one session.
func converse(ctx context.Context, opt Options, reader *reader, screen *terminal.Screen) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &talk{
		opt: opt, screen: screen, view: view{screen: screen, stream: opt.Stream, prose: chat.NewProse(screen)}, client: sdk.New(opt.Options),
		reader: reader, person: reader.lines.Person(), frames: make(chan sdk.Frame), over: ctx.Done(),
		ended: make(chan struct{}),
	}
	go func() {
		defer close(t.ended)
		t.err = t.client.Run(ctx, t)
	}()
	err := t.hold()
	cancel()
	<-t.ended
	if t.person && opt.Text == "" && t.client.Seq() > 1 {
		screen.Remark(terminal.Dim, "waggle chat --plan --session "+terminal.Line(t.client.Session(), 60)+" continues this session")
	}
	return err
}

// talk is one conversation. Its loop is the only goroutine that touches it.
type talk struct {
	opt    Options
	client *sdk.Client
	screen *terminal.Screen
	view   view
	reader *reader
	person bool
	frames chan sdk.Frame
	over   <-chan struct{}
	ended  chan struct{} // the client's; err is set
	err    error

	message  string  // id of the message that is being answered; empty = none is
	run      string  // its run, once it is known
	open     []asked // questions in the order in which they came; the first one is before the person
	summedUp bool    // the pipeline of the run has been summed up: an answer follows
	greeted  bool    // the person knows the session
	stopping bool    // the person has asked to stop
}

// Frame implements myagent.Handler.
func (t *talk) Frame(f sdk.Frame) {
	select {
	case t.frames <- f:
	case <-t.over:
	}
}

// Lost implements myagent.Handler.
func (t *talk) Lost(err error) {
	t.screen.Remark(terminal.Yellow, "connection lost ("+terminal.Line(err.Error(), lineWidth)+"); reconnecting")
	t.screen.Status("reconnecting")
}

// hold holds the conversation and returns io.EOF at its end. It explains a failed connection, which either a request to the
// client or the client's own end reports first.
func (t *talk) hold() error { return socket.Explain(t.loop()) }

// loop returns io.EOF at the end of the conversation.
func (t *talk) loop() error {
	if t.opt.Text != "" {
		if err := t.ask(t.opt.Text); err != nil {
			return err
		}
	}
	for {
		var err error
		select {
		case <-t.ended:
			return t.err
		case f := <-t.frames:
			err = t.take(f)
		case l := <-t.wanted():
			t.reader.taken()
			err = t.read(l)
		case <-t.opt.Interrupts:
			err = t.interrupt()
		}
		if err != nil {
			return err
		}
	}
}

// wanted returns the source of the next line, or nil while no line is needed.
func (t *talk) wanted() <-chan line {
	if t.message == "" || len(t.open) > 0 {
		return t.reader.next()
	}
	return nil
}

func (t *talk) read(l line) error {
	switch {
	case len(t.open) > 0 && errors.Is(l.err, io.EOF):
		return fmt.Errorf("%w: %s is waiting for a decision in session %s", chat.ErrNoAnswer, t.open[0].subject(), terminal.Line(t.client.Session(), 200))
	case l.err != nil:
		return l.err
	case len(t.open) > 0:
		return t.decide(t.open[0], l.text)
	}
	help := chat.Help + "\n\nTo a plan:\n" + decisions
	if obeyed, err := chat.Obey(t.screen, l.text, t.person, help, t.client.Session()); obeyed {
		return err
	}
	return t.ask(strings.TrimSpace(l.text))
}

func (t *talk) ask(text string) (err error) {
	t.screen.Status("sending")
	t.run, t.open, t.summedUp, t.stopping = "", nil, false, false
	t.view.plan = draft{}
	t.message, err = t.client.Message(text, nil)
	return err
}

// decide sends the person's decision on a question.
func (t *talk) decide(q asked, text string) error {
	if !q.plan() {
		content, err := q.answer(text)
		if err != nil {
			t.screen.Note(terminal.Yellow, err.Error())
			return nil
		}
		return t.respond(q, content)
	}
	v, err := t.view.plan.decide(text)
	switch {
	case err != nil:
		t.screen.Note(terminal.Yellow, err.Error())
	case v.decided:
		return t.respond(q, t.view.plan.answer(v))
	default:
		t.view.table()
		t.prompt()
	}
	return nil
}

func (t *talk) respond(q asked, content map[string]any) error {
	t.screen.Status("sending")
	err := t.client.Respond(q.step, content)
	t.settle(q.step)
	return err
}

// settle takes a question off the list, and shows the next one.
func (t *talk) settle(step string) {
	before := t.open
	t.open = slices.DeleteFunc(slices.Clone(before), func(q asked) bool { return q.step == step })
	if len(t.open) > 0 && t.open[0].step != before[0].step {
		t.prompt()
	}
}

// prompt asks the person the first question.
func (t *talk) prompt() {
	t.screen.Status("")
	q := t.open[0]
	if text := q.text(); text != "" {
		t.screen.Warn(text)
	}
	t.screen.Note(terminal.Bold, q.hint())
}

func (t *talk) interrupt() error {
	switch {
	case t.message == "":
		return io.EOF
	case t.stopping:
		return fmt.Errorf("interrupted; the run continues in session %s", terminal.Line(t.client.Session(), 200))
	}
	t.stopping = true
	t.screen.Status("stopping; Ctrl-C again leaves")
	t.client.Cancel("Stopped at the terminal")
	return nil
}

// greet prints the greeting of a new session once.
func (t *talk) greet() {
	if s := t.client.Session(); s != "" && !t.greeted && t.person && t.opt.Text == "" {
		t.greeted = true
		t.screen.Remark(terminal.Dim, chat.Greeting(t.opt.Model, s))
	}
}

// take handles a frame of the server.
func (t *talk) take(f sdk.Frame) error {
	if t.opt.Raw != nil {
		_, _ = t.opt.Raw.Write(append(terminal.ASCII(f.Raw), '\n'))
	}
	t.greet()
	m := f.Meta()
	switch {
	case t.message == "":
		return nil
	case m.MessageID == t.message && m.RunID != "" && t.run == "":
		t.run = m.RunID
	case m.MessageID == t.message && f.Event == myagent.AgentError, f.Seq == 0 && f.Event == myagent.ErrorValidation:
		return t.refused(f)
	case f.Seq == 0 && f.Event == myagent.AgentError && m.Context.StepID != "":
		t.screen.Note(terminal.Yellow, errorText(f))
	case !t.concerns(f, m):
		return nil
	}
	if t.opt.Raw == nil {
		t.view.show(f)
	}
	return t.follow(f, m)
}

// concerns tells the frames of the run, and those that say whether a worker can do it.
func (t *talk) concerns(f sdk.Frame, m sdk.Meta) bool {
	return t.run != "" && m.RunID == t.run || f.Seq == 0 && aboutWorkers(m)
}

// refused ends the question, or asks for another decision on the plan.
func (t *talk) refused(f sdk.Frame) error {
	if t.run != "" {
		t.screen.Note(terminal.Yellow, errorText(f))
		return nil
	}
	t.screen.Warn("✗ " + errorText(f))
	return t.end(fmt.Errorf("%w: %s", chat.ErrNoAnswer, errorText(f)))
}

// follow notes how far the run is.
func (t *talk) follow(f sdk.Frame, m sdk.Meta) error {
	switch f.Event {
	case myagent.AgentUserConfirm:
		if t.view.plan.tasks == nil {
			t.view.plan = draft{tasks: sdk.As[myagent.ConfirmMeta](f.Metadata).Tasks}
		}
		t.asks(asked{step: f.StepID, ConfirmMeta: sdk.As[myagent.ConfirmMeta](f.Metadata), content: sdk.As[string](f.Content)})
	case myagent.SystemNotice:
		t.answered(m)
	case myagent.PlanCoercionError:
		t.view.plan.changed = false
		if step := sdk.As[myagent.CoercionMeta](f.Metadata).ConfirmStepID; step != "" {
			t.asks(asked{step: step, ConfirmMeta: myagent.ConfirmMeta{Scope: scopePlan}})
		}
	case myagent.PlanCancelled:
		t.open = slices.DeleteFunc(t.open, asked.plan)
	case myagent.PipelineCompleted:
		t.summedUp = true
	case myagent.AgentFinalAnswer:
		return t.end(unless(sdk.As[myagent.FinalAnswerMeta](f.Metadata).Status))
	case myagent.AgentInterrupted:
		return t.end(fmt.Errorf("%w: the run was stopped", chat.ErrNoAnswer))
	case myagent.AgentError:
		if !t.summedUp {
			return t.end(fmt.Errorf("%w: %s", chat.ErrNoAnswer, errorText(f)))
		}
	}
	return nil
}

// asks puts a question on the list, unless it is there: a stream may repeat it.
func (t *talk) asks(q asked) {
	if slices.ContainsFunc(t.open, func(o asked) bool { return o.step == q.step }) {
		return
	}
	if t.open = append(t.open, q); len(t.open) == 1 {
		t.prompt()
	}
}

// unless returns an error for a failed run.
func unless(status string) error {
	if status == "failed" {
		return fmt.Errorf("%w: the run failed", chat.ErrNoAnswer)
	}
	return nil
}

// answered closes the question after a decision, here or elsewhere.
func (t *talk) answered(m sdk.Meta) {
	if m.Action != myagent.ActionUserConfirm {
		return
	}
	if slices.ContainsFunc(t.open, func(q asked) bool { return q.step == m.StepID }) {
		by := orElse(m.By, m.ClientID)
		t.screen.Note(terminal.Yellow, "decided elsewhere ("+terminal.Line(by, lineWidth)+"): "+terminal.Line(m.Decision, lineWidth))
		t.settle(m.StepID)
	}
}

// end closes the question. The conversation continues unless the question was the only one, or no
// person is there to read the error.
func (t *talk) end(err error) error {
	t.message, t.run, t.open = "", "", nil
	t.screen.Status("")
	switch {
	case t.opt.Text != "" && err == nil:
		return io.EOF
	case t.opt.Text != "" || err != nil && !t.person:
		return err
	}
	return nil
}
