package waggle

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Questions lists the questions of all sessions, members of teams and tasks, the newest first. The query has the filters of the HTTP API:
// scope, state, kind, log.
func (c *Client) Questions(ctx context.Context, query url.Values) ([]api.Question, error) {
	var l api.QuestionList
	raw, err := c.ListSome(ctx, Some{Query: query}, "questions", "questions")
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	return l.Questions, err
}

// AnswerQuestion answers a question, by its id in the list or of QuestionID. The first answer counts: a later one gets INPUT_ANSWERED.
//
// Errors: INPUT_ANSWERED, INPUT_EXPIRED, INPUT_NOT_FOUND, MEMBER_NOT_FOUND, NOT_FOUND, PLAN_INVALID, SESSION_DELETED, TASK_FINISHED, TASK_NOT_FOUND, TEAM_CLOSED.
func (c *Client) AnswerQuestion(ctx context.Context, question string, a api.QuestionAnswer) (api.QuestionOutcome, error) {
	if a.ID == "" {
		a.ID = newID()
	}
	return call[api.QuestionOutcome](ctx, c, http.MethodPost, a, "questions", question, "answer")
}

// QuestionID returns the id of the question that an event asks, for AnswerQuestion.
func QuestionID(e event.Event) (string, bool) {
	if e.Type != event.InputRequested && e.Type != event.TaskAsked {
		return "", false
	}
	var d struct {
		InputID string `json:"input_id"`
	}
	_, log, ok := strings.Cut(e.Subject, ".")
	if json.Unmarshal(e.Data, &d) != nil || !ok {
		return "", false
	}
	return log + "." + d.InputID, true
}
