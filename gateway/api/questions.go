package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// questions are what sessions, teams and tasks ask people.
type questions struct{ *parts }

const (
	// maxQuestionScan bounds the entries that one answer looks at, and maxQuestionRead those that are read together, at most 12 KB each.
	maxQuestionScan = 5000
	maxQuestionRead = 400
	// maxAnswer bounds the body of an answer.
	maxAnswer = 160 << 10
)

// The parameters of the list of questions. A question has at most 12 KB.
var (
	questionScope = chosen("scope", "plan, tool, client_tool, budget or agent.",
		event.ScopePlan, event.ScopeTool, event.ScopeClientTool, event.ScopeBudget, wire.ScopeAgent)
	questionState = chosen("state", "open (default), answered, expired or withdrawn. One whose time is over is not open.",
		wire.QuestionOpen, wire.QuestionAnswered, wire.QuestionExpired, wire.QuestionWithdrawn)
	questionKind = chosen("kind", "Kind of the log that asks: session, member or task. A question of an agent that does a job is listed once, as that of the job's log; with task, as that of its task.",
		string(id.KindSession), string(id.KindMember), string(id.KindTask))
	questionLimit = limit("Questions", 50, 200)
)

func (l questions) routes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/questions", ID: "listQuestions", Tag: "questions", Summary: "List what sessions, teams and tasks ask people.",
			Query: []openapi.Parameter{
				questionScope.Parameter, questionState.Parameter, questionKind.Parameter,
				{Name: "log", About: "Id of the log that asks.", Type: "string"},
				before, questionLimit.Parameter,
			},
			Answers: json200("A page of the questions that the principal sees.", wire.QuestionList{}), Faults: []fault.Code{fault.InvalidField},
			Handler: l.server.Serve(l.list),
		},
		{
			Method: "POST", Path: "/questions/{input}/answer", ID: "answerQuestion", Tag: "questions", Summary: "Answer a question. The first answer counts.",
			Body: wire.QuestionAnswer{}, Required: true, Example: `{"decision":"approve","feedback":"go on"}`,
			Answers: json200("The answer counts. A repeat with the same id has the same response.", wire.QuestionOutcome{}),
			Faults: []fault.Code{
				fault.NotFound, fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.SessionDeleted, fault.InputAnswered, fault.InputNotFound,
				fault.InputExpired, fault.PlanInvalid, fault.TaskNotFound, fault.TaskFinished, fault.MemberNotFound, fault.TeamClosed, fault.Draining,
			},
			Handler: l.server.Serve(l.answer),
		},
	}
}

// questionFilter is what a list of questions asks for. Empty members allow everything.
type questionFilter struct{ scope, state, kind, log string }

func questionFilterOf(q *query) questionFilter {
	f := questionFilter{scope: q.choice(questionScope), state: q.choice(questionState), kind: q.choice(questionKind), log: q.Get("log")}
	if f.state == "" {
		f.state = wire.QuestionOpen
	}
	return f
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

// list answers with a page of the questions that the principal sees and that pass the filters, from the index. It sees a question as
// it sees the log that asks.
func (l questions) list(r *http.Request, who *edge.Client) (any, error) {
	q := queryOf(r)
	limit, f, before := q.count(questionLimit), questionFilterOf(q), q.place()
	if q.err != nil {
		return nil, q.err
	}
	tenant, now, part := who.Principal().Tenant, time.Now(), subject.QuestionsOver
	if f.state == wire.QuestionOpen {
		part = subject.QuestionsOpen
	}
	out := wire.QuestionList{Questions: []wire.Question{}}
	place, err := newest.Search[index.StoredQuestion]{
		Limit: limit, Least: minScan, Most: maxQuestionScan, AtOnce: maxQuestionRead,
		Place: func(one *index.StoredQuestion) uint64 { return one.Sequence },
		Read: func(before uint64, entries int) (newest.Part[index.StoredQuestion], error) {
			page, err := l.index.Questions(r.Context(), tenant, part, before, entries)
			return newest.Part[index.StoredQuestion]{Entries: page.Questions, End: page.Scanned, Looked: page.Entries, More: page.More}, err
		},
		Take: func(one *index.StoredQuestion) (newest.Verdict, error) {
			if !who.SeesAll() && (!one.Known || !who.SeesOwner(one.Principal)) || !f.passes(one, now) {
				return newest.Skipped, nil
			}
			out.Questions = append(out.Questions, one.Question.Question)
			return newest.Taken, nil
		},
	}.Before(before)
	out.Next, out.More = next(place), place != 0
	return out, err
}

// asking is a question that an answer is for.
type asking struct {
	id, input string // as Question.ID and Question.InputID
	log       subject.Log
}

// asked returns the question that the request names, if the principal sees its log. Another one does not exist.
func (l questions) asked(r *http.Request, who *edge.Client) (q asking, err error) {
	p := who.Principal()
	q.id = r.PathValue("input")
	unknown := fault.Newf(fault.NotFound, "This question does not exist. Use the id of a question in the list.")
	tokens := strings.Split(q.id, ".")
	if len(tokens) != 3 || !slices.Contains(questionKind.known, tokens[0]) {
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
	last, err := l.edge.Log.Last(r.Context(), q.log)
	if err == nil && last.Seq == 0 {
		err = unknown
	}
	if err != nil {
		return q, err
	}
	q.input = input.String()
	known, ok, err := l.index.Question(r.Context(), q.log, input)
	if ok {
		q.input = known.InputID
	}
	return q, err
}

// answer answers a question. The response to the answer that counts is the same each time it comes; any other one
// learns which answer counts.
func (l questions) answer(r *http.Request, who *edge.Client) (any, error) {
	q, err := l.asked(r, who)
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
	if c.ID, err = edge.CommandID(b.ID, q.id); err != nil {
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
		return oneOf("decision", b.Decision, known)
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
