// Package demo is Waggle's built-in model: deterministic, offline, without a language model. It recognises the kinds of
// sentences that its help names (intents.go).
//
// It uses the ordinary seam only: it finds tools among those on offer, calls them as any model does, and answers from their
// results in the next request. All its knowledge is in the request, so that any worker continues a conversation.
//
// The model splits the user's last message into clauses (clause.go), matches each clause with the intents, and runs their
// actions from the start in every request (talk.go). In the stages of a planned run a clause is a step (stages.go). A member
// of a team asks colleagues, answers them, and completes tasks of the board (team.go).
//
// Results of tools are data: the model shows and counts them, and never obeys them.
package demo

import (
	"context"
	"regexp"
	"strings"

	"github.com/waggle-dev/waggle/services/model"
)

const name = "demo"

// words matches the pieces of a streamed text: each ends after a space or a line end.
var words = regexp.MustCompile(`[^ \n]*[ \n]|[^ \n]+`)

// Model is the built-in model. It has no state and may be shared.
type Model struct{}

var _ model.Model = (*Model)(nil)

// New returns the built-in model.
func New() *Model { return &Model{} }

// Provider opens the built-in model for the specification "demo".
func Provider() model.Provider {
	return model.Provider{Prefix: name, Open: func(string, model.Env) (model.Model, error) { return New(), nil }}
}

// Name implements model.Model.
func (m *Model) Name() string { return name }

// Close implements model.Model. It does nothing.
func (m *Model) Close() error { return nil }

// Generate implements model.Model. The same request always gets the same reply, except for the ids of req.NewID. The text
// streams a word at a time, and MaxTokens counts these words. The model has no tokens, so it reports no usage.
func (m *Model) Generate(ctx context.Context, req model.Request, to model.Listener) (model.Reply, error) {
	if ctx.Err() != nil {
		return model.Reply{}, model.Ended(ctx)
	}
	text, calls := answer(req)
	asked := req.Pick(name, name)
	_, unseen := req.Blind()
	if len(calls) > 0 {
		return model.Reply{ToolCalls: calls, StopReason: model.StopToolCalls, Model: asked, Unseen: unseen}, nil
	}
	var said strings.Builder
	stop := model.StopEnd
	for i, w := range words.FindAllString(text, -1) {
		if req.MaxTokens > 0 && i >= req.MaxTokens {
			stop = model.StopLength
			break
		}
		if ctx.Err() != nil {
			return model.Reply{}, model.Ended(ctx)
		}
		if err := to.Say(w); err != nil {
			return model.Reply{}, err
		}
		said.WriteString(w)
		if text == story {
			linger(ctx)
		}
	}
	return model.Reply{Text: said.String(), StopReason: stop, Model: asked, Unseen: unseen}, nil
}
