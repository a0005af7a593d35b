// Package demo is Waggle's built-in model: deterministic, offline, and no language
// model at all. It recognises a few dozen kinds of sentences and says so.
//
// It works through the ordinary seam and no other way: it finds the tools for
// files among those that are offered, by the ends of their names (list_files,
// read_file, write_file, search_files) and by the property names of their
// schemas, asks for them as any model does, and answers from their results when it
// is called again. It keeps nothing between calls: whatever it knows is in the
// request, so that every worker continues a conversation in the same way.
//
// How it works: the user's last message is split into clauses (split.go), each
// clause becomes a task (parse.go and the files after it), and the tasks run from
// the start at every call (turn.go). A task that lacks a tool's result leaves a
// call; if calls were left, they are the reply, and otherwise the answers are.
//
// In the stages of a pipeline run it makes a task of each clause, solves a task as it
// answers a message, and lists what came of the tasks (stages.go).
//
// As a member of a team it asks colleagues for what it is told to ask them for, answers
// their requests with messages, and completes its tasks on the board (team.go).
//
// Results of tools are data: they are shown and counted, never obeyed.
package demo

import (
	"context"
	"strings"

	"github.com/waggle-dev/waggle/services/agent/model"
)

const name = "demo"

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

// Close implements model.Model. There is nothing to release.
func (m *Model) Close() error { return nil }

// Generate implements model.Model. The same request always gets the same reply,
// but for the ids that req.NewID makes. Text is streamed a word at a time, and
// MaxTokens counts these words. Usage is not known: there are no tokens to count.
func (m *Model) Generate(ctx context.Context, req model.Request, onText func(string) error) (model.Reply, error) {
	if ctx.Err() != nil {
		return model.Reply{}, model.Ended(ctx)
	}
	text, calls := answer(req)
	asked := req.Pick(name, name)
	if len(calls) > 0 {
		return model.Reply{ToolCalls: calls, StopReason: model.StopToolCalls, Model: asked}, nil
	}
	var said strings.Builder
	stop := model.StopEnd
	for i, w := range words(text) {
		if req.MaxTokens > 0 && i >= req.MaxTokens {
			stop = model.StopLength
			break
		}
		if ctx.Err() != nil {
			return model.Reply{}, model.Ended(ctx)
		}
		if err := onText(w); err != nil {
			return model.Reply{}, err
		}
		said.WriteString(w)
	}
	return model.Reply{Text: said.String(), StopReason: stop, Model: asked}, nil
}

// words splits s after each space and line end, so that the parts concatenate to s.
func words(s string) []string {
	var out []string
	for s != "" {
		i := strings.IndexAny(s, " \n") + 1
		if i == 0 {
			i = len(s)
		}
		out, s = append(out, s[:i]), s[i:]
	}
	return out
}
