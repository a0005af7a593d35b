// Package teams runs and watches teams of agents from the terminal. It shows the members' work as
// a live tree or line by line, and asks the person for approvals of tool calls.
package teams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/cmd/waggle/chat"
	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
	"github.com/waggle-dev/waggle/sdk/go/waggle/team"
)

// Options are the options of a conversation with a team.
type Options struct {
	URL        string // of the gateway's chat or session protocol; that of teams has the same host
	Token      string
	Team       command.TeamView // its state at the start
	All        bool             // show the team from its beginning
	Text       string           // for the team; empty = only watch
	Target     string           // path of the member that gets the text; empty = the coordinator
	Yes        bool             // every tool may run
	Live       bool             // show the tree; otherwise line by line
	Raw        io.Writer        // write the frames themselves here instead; may be nil
	Interrupts <-chan os.Signal
}

func (o Options) client() team.Options {
	base := strings.TrimSuffix(strings.TrimSuffix(o.URL, "/session"), "/ws")
	return team.Options{URL: base + "/ws/agent-team/" + url.PathEscape(o.Team.TeamID), Token: o.Token, All: o.All}
}

// Talk sends the text and shows the events until the team is idle again, or watches until the team
// is closed. It reads decisions on tools from the lines. An interrupt stops the team's work; a
// second one leaves. The error says why the result is missing.
func Talk(ctx context.Context, opt Options, lines chat.Lines, screen *terminal.Screen) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer screen.Close()
	t := &talk{
		opt: opt, screen: screen, story: newStory(newTree(opt.Team)),
		client: team.New(opt.client()), lines: lines, got: make(chan read, 1),
		frames: make(chan team.Frame), over: ctx.Done(), ended: make(chan struct{}),
	}
	if opt.Text != "" {
		if err := t.ask(); err != nil {
			return err
		}
	}
	go func() {
		defer close(t.ended)
		t.err = t.client.Run(ctx, t)
	}()
	err := socket.Explain(t.loop()) // a request to the client may report the failed connection before its end does
	cancel()
	<-t.ended
	t.show()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, lines.Close())
}

// talk is one team at one terminal. Its loop is the only goroutine that touches it.
type talk struct {
	opt    Options
	client *team.Client
	screen *terminal.Screen
	story  *story
	lines  chat.Lines
	got    chan read
	frames chan team.Frame
	over   <-chan struct{}
	ended  chan struct{} // the client's; err is set
	err    error

	reading  bool   // a request for a line of the person is open
	asked    string // the tool call that it is about
	message  string // the id of the text
	begun    bool   // the team has the text
	stopping bool   // the person has asked to stop
}

// read is one line of a person.
type read struct {
	text string
	err  error
}

// Frame implements team.Handler.
func (t *talk) Frame(f team.Frame) {
	select {
	case t.frames <- f:
	case <-t.over:
	}
}

// Lost implements team.Handler.
func (t *talk) Lost(err error) {
	t.screen.Remark(terminal.Yellow, "connection lost ("+terminal.Line(err.Error(), lineWidth)+"); reconnecting")
}

// ask sends the text. Its result begins after the team accepts it; earlier work of the team belongs
// to other messages.
func (t *talk) ask() error {
	t.message = uuid.NewString()
	payload := map[string]any{"content": t.opt.Text, "message_id": t.message}
	if t.opt.Target != "" {
		payload["target_member_name"] = t.opt.Target
	}
	return t.client.Send(team.Out{Type: wire.SendMessage, Payload: payload}, func(f team.Frame) bool { return t.accepts(f) || team.Refusal(f) })
}

// accepts reports whether the frame says that the team has the text.
func (t *talk) accepts(f team.Frame) bool {
	return f.Type == wire.MessageAccepted && f.Path() == "" && f.Payload.MessageID == t.message
}

// loop returns io.EOF at the end.
func (t *talk) loop() error {
	for {
		if err := t.question(); err != nil {
			return err
		}
		var err error
		select {
		case <-t.ended:
			return t.err
		case f := <-t.frames:
			err = t.take(f)
		case r := <-t.got:
			t.reading = false
			err = t.answer(r)
		case <-t.opt.Interrupts:
			err = t.interrupt()
		}
		if err != nil {
			return err
		}
	}
}

// question asks the person about the oldest tool call that is to be decided on.
func (t *talk) question() error {
	if t.opt.Yes {
		for _, q := range slices.Clone(t.story.open) {
			if err := t.decide(q, true, ""); err != nil {
				return err
			}
		}
		return nil
	}
	watching := t.opt.Text == "" && !t.lines.Person()
	if len(t.story.open) == 0 || t.reading || watching || t.opt.Raw != nil {
		return nil
	}
	q := t.story.open[0]
	t.reading, t.asked = true, q.InvocationID
	t.screen.Note(terminal.Bold, "May "+terminal.Line(q.route, nameWidth)+" run "+terminal.Line(q.ToolName, nameWidth)+" "+
		string(terminal.ASCII(q.Arguments))+" ? y, n WHY")
	go func() {
		text, err := t.lines.Read()
		t.got <- read{text, err}
	}()
	return nil
}

// decide answers a question and closes it here; other clients close it with the server's event.
func (t *talk) decide(q question, approve bool, reason string) error {
	err := t.client.Decide(q.route, q.Payload, approve, reason)
	t.story.close(q.InvocationID)
	return err
}

// answer handles the person's answer to a question.
func (t *talk) answer(r read) error {
	switch {
	case errors.Is(r.err, io.EOF) && t.lines.Person(): // Ctrl-C, while a line was edited
		return t.interrupt()
	case errors.Is(r.err, io.EOF):
		return fmt.Errorf("%w: the team is waiting for a decision about a tool: waggle teams watch %s", chat.ErrNoAnswer, t.id())
	case r.err != nil:
		return r.err
	}
	if len(t.story.open) == 0 || t.story.open[0].InvocationID != t.asked {
		t.screen.Note(terminal.Yellow, "that has been decided meanwhile")
		return nil
	}
	word, why, _ := strings.Cut(strings.TrimSpace(r.text), " ")
	switch strings.ToLower(word) {
	case "y", "yes", "ok", "approve":
		return t.decide(t.story.open[0], true, "")
	case "n", "no", "deny", "reject":
		return t.decide(t.story.open[0], false, strings.TrimSpace(why))
	}
	return nil // else the question is asked again
}

func (t *talk) id() string { return terminal.Line(t.opt.Team.TeamID, 200) }

func (t *talk) interrupt() error {
	switch {
	case t.opt.Text == "":
		return io.EOF
	case t.stopping:
		return fmt.Errorf("interrupted; the team may still be working: waggle teams watch %s", t.id())
	}
	t.stopping = true
	t.screen.Note(terminal.Yellow, "stopping; Ctrl-C again leaves")
	t.client.Stop()
	return nil
}

// take shows a frame of the server and looks whether it is the last one.
func (t *talk) take(f team.Frame) error {
	said := t.story.take(f)
	switch {
	case t.opt.Raw != nil:
		_, _ = t.opt.Raw.Write(append(terminal.ASCII(f.Raw), '\n'))
	case t.opt.Live:
		for _, l := range said {
			if !l.quiet {
				t.screen.Note(l.Style, l.Text)
			}
		}
		t.screen.Panel(t.story.rows())
	default:
		for _, l := range said {
			_, _ = fmt.Fprintln(t.screen, l.Text)
		}
	}
	return t.follow(f)
}

// follow notes the team's progress. It returns io.EOF at its end.
func (t *talk) follow(f team.Frame) error {
	t.begun = t.begun || t.accepts(f)
	greeting := f.Payload.Envelope.Sequence == 0
	switch {
	case team.Refusal(f) && t.opt.Text != "" && !t.begun:
		return fmt.Errorf("%w: %s", chat.ErrNoAnswer, terminal.Line(f.Err().Error(), 2000))
	case f.Type != wire.TeamStatus || f.Path() != "", greeting && (t.opt.All || t.begun): // later frames decide
		return nil
	case f.Payload.NewStatus == event.TeamShuttingDown && t.opt.Text == "":
		return io.EOF
	case f.Payload.NewStatus == event.TeamShuttingDown:
		return fmt.Errorf("%w: the team was closed", chat.ErrNoAnswer)
	case t.opt.Text == "" || !t.begun:
		return nil
	}
	return t.outcome(f.Payload.NewStatus)
}

// outcome returns the outcome of the message by the team's status, nil while the team works.
func (t *talk) outcome(status string) error {
	switch {
	case status == event.TeamFailed:
		return fmt.Errorf("%w: the team failed", chat.ErrNoAnswer)
	case status == event.TeamIdle && t.stopping:
		return fmt.Errorf("%w: stopped", chat.ErrNoAnswer)
	case status == event.TeamIdle:
		return io.EOF
	}
	return nil
}

// show prints the tree a last time.
func (t *talk) show() {
	if !t.opt.Live {
		return
	}
	t.screen.Panel(nil)
	for _, r := range t.story.rows() {
		t.screen.Note(r.Style, r.Text)
	}
}
