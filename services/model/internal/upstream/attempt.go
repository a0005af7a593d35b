package upstream

import (
	"context"
	"strings"

	"github.com/waggle-dev/waggle/services/model"
)

// Do makes one attempt and returns its sink with the whole answer. Its errors are those that model.Model promises.
func (c *Client) Do(ctx context.Context, to model.Listener, attempt func(context.Context, *Sink) error) (*Sink, error) {
	s := &Sink{to: to}
	err := attempt(ctx, s)
	if err == nil {
		err = s.end()
	}
	switch {
	case err == nil:
		return s, nil
	case s.err != nil:
		return nil, s.err
	case ctx.Err() != nil:
		return nil, model.Ended(ctx)
	}
	return nil, c.classify(err)
}

// Answer completes a reply with the text and the reasoning. A reply that says nothing is a failure.
func (c *Client) Answer(s *Sink, r model.Reply) (model.Reply, error) {
	r.Text, r.Reasoning = s.text.String(), s.reasoning.String()
	if strings.TrimSpace(r.Text) == "" && len(r.ToolCalls) == 0 {
		return model.Reply{}, c.empty(&emptyError{stop: r.StopReason, reasoning: len(r.Reasoning)})
	}
	return r, nil
}
