package index

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// maxRow bounds an open question in the index, and maxPast one that is over, which are many. A larger one leaves its
	// contents to the log.
	maxRow  = 12 << 10
	maxPast = 2 << 10
	// maxOpen bounds the open questions of one log that are read at once: more than any run asks.
	maxOpen = 1000
)

// Question is a question as the index stores it.
type Question struct {
	api.Question
	Known   bool   `json:"known,omitempty"` // the owner of the log is known
	LastSeq uint64 `json:"last_seq"`        // of the event that made its state
	Gone    bool   `json:"gone,omitempty"`  // a marker in its place

	Elsewhere bool `json:"elsewhere,omitempty"` // the log of the job that the task is asks it, too
}

// StoredQuestion is a question and its place in the index.
type StoredQuestion struct {
	Log subject.Log
	Question
	Sequence uint64
}

// QuestionPage is a part of the questions of a tenant.
type QuestionPage struct {
	Questions []StoredQuestion
	Scanned   uint64 // place of the oldest entry that was read; 0: none
	Entries   int    // that were read
	More      bool   // older ones follow: ask before Scanned
}

// Questions returns the newest questions of a part of the index that lie before the sequence, as Page does.
func (x *Index) Questions(ctx context.Context, t id.Tenant, part string, before uint64, want int) (QuestionPage, error) {
	p, err := x.newest.Read(ctx, subject.QuestionFilter(t, part), before, want)
	out := QuestionPage{More: p.More, Entries: len(p.Entries)}
	for _, e := range p.Entries {
		one, broken := questionOf(e)
		out.Scanned = e.Sequence
		switch {
		case broken != nil:
			return out, broken
		case !one.Gone:
			out.Questions = append(out.Questions, one)
		}
	}
	return out, err
}

// Question returns a question of a log; ok is false if the index does not have it.
func (x *Index) Question(ctx context.Context, log subject.Log, input id.Entity) (q Question, ok bool, err error) {
	for _, part := range []string{subject.QuestionsOver, subject.QuestionsOpen} {
		q, _, err = x.stored(ctx, log.Question(part, input))
		if err != nil || q.LastSeq > 0 && !q.Gone {
			return q, err == nil, err
		}
	}
	return Question{}, false, nil
}

// stored returns the entry of a subject and its revision, 0 for none.
func (x *Index) stored(ctx context.Context, name string) (q Question, revision uint64, err error) {
	m, err := x.newest.Last(ctx, name)
	if errors.Is(err, newest.ErrNone) {
		return q, 0, nil
	}
	if err != nil {
		return q, 0, err
	}
	if json.Unmarshal(m.Data, &q) != nil {
		q = Question{} // of another version
	}
	return q, m.Sequence, nil
}

func questionOf(e newest.Entry) (StoredQuestion, error) {
	log, _, _, err := subject.ParseQuestion(e.Subject)
	if err != nil {
		return StoredQuestion{}, err
	}
	out := StoredQuestion{Log: log, Sequence: e.Sequence}
	if err := json.Unmarshal(e.Data, &out.Question); err != nil {
		return out, fmt.Errorf("decode a question of %s: %w", log, err)
	}
	return out, nil
}

// turn is what an event changes about the questions of its log.
type turn struct {
	asked *Question // nil: the event ends questions
	input string    // the one that ends; empty: those of the run
	run   string    // empty, too: all
	end   api.Question
	seq   uint64
}

// turns collects the turns of the events of a log.
type turns []turn

// ended notes the end of a question.
func (t *turns) ended(e *eventlog.Entry, input string, end api.Question) {
	end.EndedAt = e.Time
	*t = append(*t, turn{input: input, end: end, seq: e.Sequence})
}

// withdrawn notes that nothing waits any more for answers to the questions of a run, or of the whole log without one.
func (t *turns) withdrawn(e *eventlog.Entry, run string) {
	*t = append(*t, turn{run: run, end: api.Question{State: api.QuestionWithdrawn, EndedAt: e.Time}, seq: e.Sequence})
}

// add notes what the event of a log with the summary changes.
func (t *turns) add(log subject.Log, s *Summary, e *eventlog.Entry) {
	switch e.Type {
	case event.InputRequested, event.TaskAsked:
		t.begun(log, s, e)
	case event.InputAnswered, event.TaskMessaged:
		t.answered(e)
	case event.InputExpired, event.TaskAskExpired, event.RunCompleted, event.RunFailed, event.RunCancelled, event.PlanCancelled:
		t.over(e)
	case event.SessionClosed, event.MemberClosed, event.TaskReleased, event.TaskFinished:
		t.withdrawn(e, "")
	}
}

// begun notes the question that the event asks.
func (t *turns) begun(log subject.Log, s *Summary, e *eventlog.Entry) {
	if e.Type == event.InputRequested {
		if d, err := eventdata.As[event.InputRequestedData](e.Event); err == nil {
			q, timeout := ofInput(d), time.Duration(d.TimeoutSeconds)*time.Second
			if d.Scope == event.ScopeAgent {
				q.Asker, timeout = cmp.Or(s.Route, d.AgentName, d.AgentID), max(d.ExpiresAt.Sub(e.Time), time.Millisecond)
			}
			t.asks(log, s, e, q, timeout)
		}
		return
	}
	if d, err := eventdata.As[event.TaskAskedData](e.Event); err == nil {
		t.withdrawn(e, "") // an agent has one open question
		t.asks(log, s, e, ofAgent(d), time.Duration(d.TimeoutMS)*time.Millisecond)
	}
}

// answered notes the answer that the event holds.
func (t *turns) answered(e *eventlog.Entry) {
	if e.Type == event.InputAnswered {
		if d, err := eventdata.As[event.InputAnsweredData](e.Event); err == nil {
			t.ended(e, d.InputID, api.Question{State: api.QuestionAnswered, AnsweredBy: d.By, AnsweredOn: d.ClientID, Decision: d.Decision})
		}
		return
	}
	if d, err := eventdata.As[event.TaskMessagedData](e.Event); err == nil && d.InputID != "" {
		end := api.Question{State: api.QuestionAnswered, AnsweredBy: cmp.Or(d.From, d.By), Decision: api.DecisionAnswer}
		if d.Given != nil {
			end.AnsweredOn, end.Decision = d.Given.ClientID, d.Given.Decision
		}
		t.ended(e, d.InputID, end)
	}
}

// over notes that a question, or all of a run or of a plan, take no answer any more.
func (t *turns) over(e *eventlog.Entry) {
	var d names
	if eventdata.Into(e.Event, &d) != nil {
		return
	}
	switch e.Type {
	case event.InputExpired, event.TaskAskExpired:
		state := api.QuestionExpired
		if d.Withdrawn {
			state = api.QuestionWithdrawn
		}
		t.ended(e, d.InputID, api.Question{State: state})
	case event.PlanCancelled:
		if d.PlanID != "" {
			*t = append(*t, turn{run: d.RunID, end: api.Question{State: api.QuestionWithdrawn, PlanID: d.PlanID, EndedAt: e.Time}, seq: e.Sequence})
		}
	default:
		if d.RunID != "" {
			t.withdrawn(e, d.RunID)
		}
	}
}

// names are the names in the data of an event.
type names struct {
	RunID   string `json:"run_id"`
	InputID string `json:"input_id"`
	PlanID  string `json:"plan_id"`

	Withdrawn bool `json:"withdrawn"`
}

// asks notes a new question, which expires after a time unless that is 0.
func (t *turns) asks(log subject.Log, s *Summary, e *eventlog.Entry, q api.Question, timeout time.Duration) {
	q.ID, q.State, q.Kind, q.LogID, q.Seq, q.AskedAt = QuestionID(log, q.InputID), api.QuestionOpen, string(log.Kind), log.Entity.String(), e.Sequence, e.Time
	q.Title, q.Principal, q.TeamID, q.Asker = s.Question, s.Owner, s.Team, cmp.Or(q.Asker, s.Route)
	if timeout > 0 {
		q.ExpiresAt = e.Time.Add(timeout)
	}
	*t = append(*t, turn{asked: &Question{Question: q, Known: s.Known, LastSeq: e.Sequence, Elsewhere: s.Job}, seq: e.Sequence})
}

func ofInput(d event.InputRequestedData) api.Question {
	q := api.Question{
		InputID: d.InputID, Scope: d.Scope, RunID: d.RunID, ExecutionID: d.ExecutionID, PlanID: d.PlanID, Steps: d.Steps, Summary: d.Summary,
		CallID: d.CallID, Tool: d.Tool, Description: d.Description, Arguments: d.Arguments, Parameters: d.Parameters, Budget: d.Budget,
	}
	if d.Scope == event.ScopeTool { // of what is shown, whatever the event says
		q.Digest = event.CallDigest(d.Tool, d.Arguments)
	}
	if d.Scope == event.ScopeAgent {
		q.Summary, q.MessageType, q.Message, q.Options, q.Cut = "", d.MessageType, d.Message, d.Options, d.Cut
	}
	return q
}

func ofAgent(d event.TaskAskedData) api.Question {
	return api.Question{
		InputID: d.InputID, Scope: api.ScopeAgent, Asker: cmp.Or(d.AgentName, d.AgentID), MessageType: d.MessageType,
		Message: d.Message, Options: d.Options, Cut: d.MessageRef != nil,
	}
}

// QuestionID returns the name of a question in its tenant.
func QuestionID(log subject.Log, input string) string {
	return string(log.Kind) + "." + log.Entity.String() + "." + id.EntityFromExternal(input).String()
}

// apply makes the turns of the questions that wait, which are those that are open afterwards, and returns those that change.
func (t turns) apply(waiting map[string]*Question) (out []*Question) {
	touched := map[string]bool{}
	note := func(q *Question) {
		if !touched[q.ID] {
			touched[q.ID], out = true, append(out, q)
		}
	}
	for _, t := range t {
		if t.asked != nil {
			if waiting[t.asked.ID] == nil {
				waiting[t.asked.ID] = t.asked
				note(t.asked)
			}
			continue
		}
		for name, q := range waiting {
			if t.input != "" && t.input != q.InputID || t.run != "" && t.run != q.RunID || t.end.PlanID != "" && t.end.PlanID != q.PlanID || q.LastSeq >= t.seq {
				continue
			}
			q.State, q.AnsweredBy, q.AnsweredOn, q.Decision, q.EndedAt = t.end.State, t.end.AnsweredBy, t.end.AnsweredOn, t.end.Decision, t.end.EndedAt
			q.LastSeq = t.seq
			delete(waiting, name)
			note(q)
		}
	}
	return out
}

// waiting returns the open questions of a log in the index, by their ids, and those among them that are over: because the work of a
// writer was cut short, or a crash of the bus has brought them back.
func (x *Index) waiting(ctx context.Context, log subject.Log) (open map[string]*Question, over []*Question, err error) {
	open = map[string]*Question{}
	p, err := x.newest.Read(ctx, log.Questions(subject.QuestionsOpen), 0, maxOpen)
	for _, e := range p.Entries {
		one, broken := questionOf(e)
		if broken != nil || one.Gone {
			continue
		}
		end, _, err := x.stored(ctx, log.Question(subject.QuestionsOver, id.EntityFromExternal(one.InputID)))
		switch {
		case err != nil:
			return nil, nil, err
		case end.LastSeq > one.LastSeq && !end.Gone:
			over = append(over, &end)
		default:
			open[one.ID] = &one.Question
		}
	}
	return open, over, err
}

// put writes an entry unless a newer one is there. It returns errRaced if another process has changed it meanwhile.
func (x *Index) put(ctx context.Context, name string, q Question) error {
	old, revision, err := x.stored(ctx, name)
	if err != nil || old.LastSeq >= q.LastSeq {
		return err
	}
	raw, err := q.encode()
	if err != nil {
		return err
	}
	return x.replace(ctx, &nats.Msg{Subject: name, Data: raw}, revision, q.Gone)
}

// encode returns the entry of the question. One that is too large leaves its contents to the log.
func (q Question) encode() ([]byte, error) {
	limit := maxPast
	if q.State == api.QuestionOpen {
		limit = maxRow
	} else {
		q.Parameters = nil
	}
	raw, err := json.Marshal(q)
	if err == nil && len(raw) > limit {
		q.Arguments, q.Parameters, q.Steps, q.Summary, q.Description, q.Message, q.Options, q.Cut = nil, nil, nil, "", "", nil, nil, true
		raw, err = json.Marshal(q)
	}
	if err != nil {
		return nil, fmt.Errorf("encode a question: %w", err)
	}
	return raw, nil
}

// replace writes an entry, or a marker that stands for a while, in place of the revision, 0 for none. It returns errRaced if another
// process has changed it meanwhile.
func (x *Index) replace(ctx context.Context, m *nats.Msg, revision uint64, marker bool) error {
	opts := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(revision)}
	if marker {
		opts = append(opts, jetstream.WithMsgTTL(x.markerLife))
	}
	_, err := x.conn.JS().PublishMsg(ctx, m, opts...)
	switch {
	case wrongLast(err):
		return errRaced
	case err != nil:
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("write %s: %w", m.Subject, err))
	}
	return nil
}

// fade replaces the summary and the questions of a log by markers.
func (x *Index) fade(ctx context.Context, log subject.Log) error {
	for _, part := range []string{subject.QuestionsOpen, subject.QuestionsOver} {
		p, err := x.newest.Read(ctx, log.Questions(part), 0, maxOpen)
		if err != nil {
			return err
		}
		for _, e := range p.Entries {
			if one, _ := questionOf(e); !one.Gone { // a broken one, too
				if err := x.mark(ctx, e.Subject, Question{LastSeq: one.LastSeq, Gone: true}); err != nil {
					return err
				}
			}
		}
	}
	return x.mark(ctx, log.Index(), Summary{Gone: true})
}

func (x *Index) mark(ctx context.Context, name string, marker any) error {
	raw, err := json.Marshal(marker)
	if err == nil {
		_, err = x.conn.JS().PublishMsg(ctx, &nats.Msg{Subject: name, Data: raw}, jetstream.WithMsgTTL(x.markerLife))
	}
	if err != nil {
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("remove %s: %w", name, err))
	}
	return nil
}
