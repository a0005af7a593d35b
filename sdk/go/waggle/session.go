package waggle

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/sdk/go/waggle/orbit"
)

// ErrNoPlan is returned by what only sessions that plan can do.
var ErrNoPlan = errors.New("waggle: a chat has no plans: use Client.Plan")

// Session is a conversation that survives its connections. Its methods are safe for
// concurrent use.
type Session struct {
	chat *orbit.Client   // of a chat
	plan *myagent.Client // of a session that plans

	events  chan Event
	stop    context.CancelFunc
	leaving <-chan struct{} // stop was called
	ended   chan struct{}   // err is set
	err     error
}

// Chat opens a session whose messages are answered at once, with the help of tools. It
// connects in the background: the first Next says if that fails.
func (c *Client) Chat(o SessionOptions) *Session {
	s := &Session{}
	s.chat = orbit.New(orbit.Options{
		URL: c.socket("/ws"), Next: c.next("/ws"), Session: o.ID, After: o.After,
		Token: c.opt.Token, TokenSource: c.opt.TokenSource, HTTPClient: c.opt.HTTPClient,
	})
	s.run(c.ctx, func(ctx context.Context) error { return s.chat.Run(ctx, orbitHandler{s}) })
	return s
}

// Plan opens a session whose messages are planned: carried out as steps of which an answer is
// made. It connects in the background: the first Next says if that fails.
func (c *Client) Plan(o SessionOptions) *Session {
	s := &Session{plan: myagent.New(c.myagent(o))}
	s.run(c.ctx, func(ctx context.Context) error { return s.plan.Run(ctx, myagentHandler{s}) })
	return s
}

func (s *Session) run(ctx context.Context, live func(context.Context) error) {
	s.events, s.ended = make(chan Event), make(chan struct{})
	ctx, s.stop = context.WithCancel(ctx)
	s.leaving = ctx.Done()
	go func() {
		defer close(s.ended)
		err := live(ctx)
		if ctx.Err() != nil || errors.Is(err, link.ErrClosed) {
			err = ErrClosed
		}
		s.err = typed(err)
	}()
}

type orbitHandler struct{ *Session }

func (h orbitHandler) Frame(f orbit.Frame) { h.tell(ofOrbit(f)) }

func (h orbitHandler) Lost(err error) { h.tell(Event{Data: Lost{err}}) }

type myagentHandler struct{ *Session }

func (h myagentHandler) Frame(f myagent.Frame) { h.tell(ofMyAgent(f)) }

func (h myagentHandler) Lost(err error) { h.tell(Event{Data: Lost{err}}) }

// tell hands an event to Next and waits until it is taken.
func (s *Session) tell(e Event) {
	select {
	case s.events <- e:
	case <-s.leaving:
	}
}

// ID returns the session's id, empty until the server has greeted.
func (s *Session) ID() string {
	if s.plan != nil {
		return s.plan.Session()
	}
	return s.chat.Session()
}

// Seq returns the position for SessionOptions.After.
func (s *Session) Seq() uint64 {
	if s.plan != nil {
		return s.plan.Seq()
	}
	return s.chat.Seq()
}

// Next returns the next event, and waits for one. Its error is that of ctx, or the end of
// the session: ErrClosed, an *Error of the server, or why the gateway cannot be reached.
func (s *Session) Next(ctx context.Context) (Event, error) {
	select {
	case e := <-s.events:
		return e, nil
	case <-s.ended:
		return Event{}, s.err
	case <-ctx.Done():
		return Event{}, ctx.Err()
	}
}

// Events returns all events from now on. It ends with the error that Next returns.
func (s *Session) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := s.Next(ctx)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the connection. Runs of the session continue.
func (s *Session) Close() {
	s.stop()
	<-s.ended
}

// Send sends a message. It counts once, however often the connection breaks; without a connection
// it waits for one. The events tell its result.
func (s *Session) Send(text string) error {
	_, err := s.send(text)
	return err
}

// send is Send, and returns the id of the message, empty in chats.
func (s *Session) send(text string) (string, error) {
	if s.plan == nil {
		return "", s.chat.Send(text)
	}
	return s.plan.Message(text, nil)
}

// Ask sends a message and takes the events up to its answer. A failure is an *Error.
// Questions of the run, such as whether a plan is to be carried out, go to decide; without
// it they stay open for others. Ask is for programs that take the events of the session
// nowhere else.
func (s *Session) Ask(ctx context.Context, text string, decide func(Question) Reply) (Answer, error) {
	id, err := s.send(text)
	if err != nil {
		return Answer{}, err
	}
	a := asked{id: id, text: text}
	for e, err := range s.Events(ctx) {
		if err != nil {
			return Answer{}, err
		}
		if q, ok := e.Data.(Question); ok && e.Run == a.run && decide != nil {
			if err := s.Answer(q, decide(q)); err != nil {
				return Answer{}, err
			}
		}
		if a.endsWith(e) {
			return outcome(e)
		}
	}
	return Answer{}, ErrClosed // Events ends with an error
}

// asked is a message that waits for its answer.
type asked struct {
	id, text string // the id is empty in chats
	run      string // once the message is accepted
}

// endsWith notes the run of the message and reports whether the event ends it: the run has ended,
// or the message was refused.
func (a *asked) endsWith(e Event) bool {
	switch d := e.Data.(type) {
	case Accepted:
		if a.run == "" && d.Text == a.text && d.MessageID == a.id {
			a.run = e.Run
		}
	case Failure:
		if e.Run == "" && d.MessageID != "" && d.MessageID != a.id {
			return false // of another client's message
		}
	}
	return e.ends() && e.Run == a.run
}

// outcome returns the outcome from the last event of a run.
func outcome(e Event) (Answer, error) {
	switch d := e.Data.(type) {
	case Answer:
		return d, nil
	case Failure:
		return Answer{}, d.Err
	}
	return Answer{}, &Error{Code: string(fault.RunCancelled), Message: "The run was stopped."}
}

// Reply answers a question.
type Reply struct {
	Approve  bool
	Feedback string // why, for the model; may be empty
	// Steps, if not nil, are the plan that is carried out in place of the proposed one.
	Steps []Step
	// Arguments, if not nil, are what an approved call runs with instead of those of the question. Chat sessions have no word for it.
	Arguments json.RawMessage
}

// Answer answers a question. The first answer counts; Answered tells which client gave it.
func (s *Session) Answer(q Question, r Reply) error {
	if s.plan == nil {
		if r.Arguments != nil {
			return ErrNoPlan
		}
		return s.chat.Answer(q.ID, r.Approve, r.Feedback)
	}
	content := map[string]any{"approved": r.Approve}
	if r.Feedback != "" {
		content["feedback"] = r.Feedback
	}
	if r.Approve && r.Arguments != nil {
		content["tool_args"] = r.Arguments
	}
	if r.Approve && r.Steps != nil {
		content = map[string]any{"confirmed": true, "tasks": r.Steps}
	}
	return s.plan.Respond(q.ID, content)
}

// Solve has steps carried out without planning.
func (s *Session) Solve(steps ...Step) error {
	if s.plan == nil {
		return ErrNoPlan
	}
	_, err := s.plan.SolveTasks(steps, nil)
	return err
}

// Cancel stops the active run. Without a connection it fails with link.ErrLost.
func (s *Session) Cancel(reason string) error {
	if s.plan == nil {
		return told(s.chat.Cancel())
	}
	return told(s.plan.Cancel(reason))
}

// CancelStep stops one step of a plan.
func (s *Session) CancelStep(step string) error {
	return s.control(wire.UserCancelTask, map[string]any{"task_id": step})
}

// RestartStep tries a step of a plan again that has failed or was cancelled.
func (s *Session) RestartStep(step string) error {
	return s.control(wire.UserRestartTask, map[string]any{"task_id": step})
}

// CancelPlan cancels a plan whose steps have not started.
func (s *Session) CancelPlan(reason string) error { return s.control(wire.UserCancelPlan, reason) }

// Replan has the plan made again. question may be empty: that of the run.
func (s *Session) Replan(question string) error {
	return s.control(wire.UserReplan, map[string]any{"question": question})
}

// control sends a command about a plan.
func (s *Session) control(event string, content any) error {
	if s.plan == nil {
		return ErrNoPlan
	}
	return told(s.plan.Tell(map[string]any{"event": event, "content": content}))
}

// told returns link.ErrLost if a frame was not sent.
func told(ok bool) error {
	if !ok {
		return link.ErrLost
	}
	return nil
}
