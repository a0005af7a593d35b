package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// defaultQuestions and maxQuestions bound the questions of one page, at most 12 KB each.
	defaultQuestions = 50
	maxQuestions     = 200
	// maxQuestionScan bounds the entries that one answer looks at, and maxQuestionRead those that are read together, at most 12 KB each.
	maxQuestionScan = 5000
	maxQuestionRead = 400
	// maxAnswer bounds the body of an answer.
	maxAnswer = 160 << 10
)

// questionFilter is what a list of questions asks for. Empty members allow everything.
type questionFilter struct{ scope, state, kind, log string }

func questionFilterOf(r *http.Request) (questionFilter, error) {
	q := r.URL.Query()
	f := questionFilter{scope: q.Get("scope"), state: q.Get("state"), kind: q.Get("kind"), log: q.Get("log")}
	if f.state == "" {
		f.state = wire.QuestionOpen
	}
	for _, one := range []struct {
		name, value string
		known       []string
	}{
		{"scope", f.scope, []string{event.ScopePlan, event.ScopeTool, event.ScopeClientTool, event.ScopeBudget, wire.ScopeAgent}},
		{"state", f.state, []string{wire.QuestionOpen, wire.QuestionAnswered, wire.QuestionExpired, wire.QuestionWithdrawn}},
		{"kind", f.kind, []string{string(id.KindSession), string(id.KindMember), string(id.KindTask)}},
	} {
		if one.value != "" && !slices.Contains(one.known, one.value) {
			return f, fault.Newf(fault.InvalidField, "%s must be one of %s.", one.name, strings.Join(one.known, ", ")).At(one.name)
		}
	}
	return f, nil
}

// passes reports whether the list has the question at the time. One that takes no answer any more is not open, even before an event
// says so. One of an agent that does a job is that of the job's log, unless the list asks for those of tasks.
func (f questionFilter) passes(q *index.StoredQuestion, now time.Time) bool {
	expired := q.State == wire.QuestionOpen && !q.ExpiresAt.IsZero() && now.After(q.ExpiresAt)
	if expired || q.Elsewhere && f.kind == "" && f.log == "" {
		return false
	}
	is := func(want, has string) bool { return want == "" || want == has }
	return is(f.scope, q.Scope) && is(f.state, q.State) && is(f.kind, q.Kind) && is(f.log, q.LogID)
}

// sees reports whether the principal sees the question: as it sees the log that asks.
func (a *API) sees(who *edge.Client, q *index.StoredQuestion) bool {
	return who.SeesAll() || q.Known && who.SeesOwner(q.Principal)
}

// listQuestions answers with a page of the questions that the principal sees and that pass the filters, from the index.
func (a *API) listQuestions(r *http.Request, who *edge.Client) (any, error) {
	limit, err := request.Number(r, "limit", defaultQuestions, maxQuestions)
	if err != nil {
		return nil, err
	}
	f, err := questionFilterOf(r)
	if err != nil {
		return nil, err
	}
	before, err := placeOf(r)
	if err != nil {
		return nil, err
	}
	return a.questions(r.Context(), who, f, before, limit)
}

// questions collects a page of questions before the place in the index.
func (a *API) questions(ctx context.Context, who *edge.Client, f questionFilter, before uint64, limit int) (wire.QuestionList, error) {
	p := who.Principal()
	part, now := subject.QuestionsOver, time.Now()
	if f.state == wire.QuestionOpen {
		part = subject.QuestionsOpen
	}
	out := wire.QuestionList{Questions: []wire.Question{}}
	for scanned, least := 0, minScan; ; least = min(2*least, maxQuestionRead) {
		page, err := a.index.Questions(ctx, p.Tenant, part, before, min(max(limit-len(out.Questions), least), maxQuestionScan-scanned))
		if err != nil {
			return out, err
		}
		full := false
		for i := range page.Questions {
			one := &page.Questions[i]
			if full = len(out.Questions) == limit; full {
				break
			}
			before = one.Sequence
			if a.sees(who, one) && f.passes(one, now) {
				out.Questions = append(out.Questions, one.Question.Question)
			}
		}
		if !full {
			before = page.Scanned
		}
		scanned += page.Entries
		switch {
		case !full && !page.More:
			return out, nil
		case full || len(out.Questions) == limit || scanned >= maxQuestionScan:
			out.Next, out.More = strconv.FormatUint(before, 10), true
			return out, nil
		}
	}
}

// asking is a question that an answer is for.
type asking struct {
	id, input string // as Question.ID and Question.InputID
	log       subject.Log
}

// asked returns the question that the request names, if the principal sees its log. Another one does not exist.
func (a *API) asked(r *http.Request, who *edge.Client) (q asking, err error) {
	p := who.Principal()
	q.id = r.PathValue("input")
	unknown := fault.Newf(fault.NotFound, "This question does not exist. Use the id of a question in the list.")
	tokens := strings.Split(q.id, ".")
	if len(tokens) != 3 || !slices.Contains([]id.Kind{id.KindSession, id.KindMember, id.KindTask}, id.Kind(tokens[0])) {
		return q, unknown
	}
	entity, err := id.ParseEntity(tokens[1])
	if err != nil {
		return q, unknown
	}
	input, err := id.ParseEntity(tokens[2])
	if err != nil {
		return q, unknown
	}
	q.log = subject.Log{Tenant: p.Tenant, Kind: id.Kind(tokens[0]), Entity: entity}
	if err := who.Sees(r.Context(), q.log, unknown); err != nil {
		return q, err
	}
	last, err := a.cfg.Edge.Log.Last(r.Context(), q.log)
	if err == nil && last.Seq == 0 {
		err = unknown
	}
	if err != nil {
		return q, err
	}
	q.input = input.String()
	known, ok, err := a.index.Question(r.Context(), q.log, input)
	if ok {
		q.input = known.InputID
	}
	return q, err
}

// answerQuestion answers a question. The response to the answer that counts is the same each time it comes; any other one
// learns which answer counts.
func (a *API) answerQuestion(r *http.Request, who *edge.Client) (any, error) {
	q, err := a.asked(r, who)
	if err != nil {
		return nil, err
	}
	var body struct {
		wire.QuestionAnswer
		Tasks         json.RawMessage `json:"tasks"`          // the former name of steps
		ModifiedTasks json.RawMessage `json:"modified_tasks"` // the former name of modified_steps
	}
	if err := request.DecodeKnown(r, maxAnswer, &body); err != nil {
		return nil, err
	}
	if err := renamed(map[string]json.RawMessage{"tasks": body.Tasks, "modified_tasks": body.ModifiedTasks}); err != nil {
		return nil, err
	}
	b := body.QuestionAnswer
	if err := checkAnswer(q.log.Kind, b); err != nil {
		return nil, err
	}
	c := cmd.Command{Service: cmd.Pipeline, Verb: cmd.Answer, Key: q.log.Entity}
	if c.ID, err = commandID(b.ID, q.id); err != nil {
		return nil, err
	}
	var data any = cmd.AnswerQuestion{
		InputID: q.input, Digest: b.Digest, Approved: b.Decision != event.DecisionReject, Feedback: b.Feedback,
		Steps: b.Steps, Modified: b.ModifiedSteps, Arguments: b.Arguments, ClientID: b.ClientID, Result: b.Result, Message: b.Message,
	}
	switch q.log.Kind {
	case id.KindMember:
		team, ok := id.TeamOf(q.log.Entity)
		if !ok {
			return nil, fault.New(fault.MemberNotFound)
		}
		c.Service, c.Key, c.Member = cmd.Team, team, q.log.Entity.String()
	case id.KindTask:
		c.Service, c.Verb = cmd.Task, cmd.MessageTask
		data = cmd.TaskMessage{TaskID: q.log.Entity.String(), InputID: q.input, MessageType: cmd.TypeInputResponse, Message: b.Message}
	}
	e, err := act(r, who, q.log, c, data, func(e event.Event) bool { return cameOf(e, c.ID) })
	if err != nil {
		return nil, err
	}
	return answered(q, who, c.ID, b, e)
}

// cameOf reports whether the event came of the answer with the command's id.
func cameOf(e event.Event, commandID string) bool {
	switch e.Type {
	case event.InputAnswered:
		d, err := event.As[event.InputAnsweredData](e)
		return err == nil && d.CommandID == commandID
	case event.TaskMessaged:
		d, err := event.As[event.TaskMessagedData](e)
		return err == nil && d.MessageID == commandID
	case event.PlanInvalid:
		return strings.HasPrefix(e.ID, commandID+".")
	}
	return false
}

// checkAnswer returns the fault of an answer that no question of the kind takes.
func checkAnswer(kind id.Kind, b wire.QuestionAnswer) error {
	known := []string{event.DecisionApprove, event.DecisionModify, event.DecisionReject, wire.DecisionAnswer}
	if kind == id.KindTask {
		known = known[3:]
	}
	edits := len(b.Steps)+len(b.ModifiedSteps)+len(b.Arguments) > 0
	switch {
	case !slices.Contains(known, b.Decision):
		return fault.Newf(fault.InvalidField, "decision must be one of %s.", strings.Join(known, ", ")).At("decision")
	case b.Decision == wire.DecisionAnswer && len(b.Message) == 0:
		return fault.Newf(fault.InvalidField, "An answer to an agent needs a message.").At("message")
	case b.Decision != wire.DecisionAnswer && len(b.Message) > 0:
		return fault.Newf(fault.InvalidField, "message is only valid with decision=answer.").At("message")
	case b.Decision == event.DecisionModify && !edits:
		return fault.Newf(fault.InvalidField, "decision=modify needs steps, modified_steps or arguments.").At("decision")
	case b.Decision != event.DecisionModify && edits:
		return fault.Newf(fault.InvalidField, "steps, modified_steps and arguments are only valid with decision=modify.").At("decision")
	}
	return nil
}

// answered returns the response to an answer, from the event that it has caused.
func answered(q asking, who *edge.Client, commandID string, b wire.QuestionAnswer, e event.Event) (any, error) {
	p := who.Principal()
	out := wire.QuestionOutcome{
		ID: q.id, InputID: q.input, Decision: b.Decision, AnsweredBy: p.Subject, AnsweredOn: b.ClientID, Seq: e.Sequence, CommandID: commandID,
	}
	switch e.Type {
	case event.PlanInvalid:
		d, err := event.As[event.PlanInvalidData](e)
		if err != nil {
			return nil, err
		}
		return nil, fault.Newf(fault.PlanInvalid, "%s", d.Message).At("steps")
	case event.InputAnswered:
		d, err := event.As[event.InputAnsweredData](e)
		if err != nil {
			return nil, err
		}
		out.Decision, out.AnsweredBy, out.AnsweredOn, out.RunID = d.Decision, d.By, d.ClientID, d.RunID
	}
	return out, nil
}
