package edge

import (
	"context"
	"errors"

	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// exact binds an approval to the call that was shown, so that the signature covers it: the call of the question as the connection has
// shown it, or else as the log shows it. A digest that the client sends has to be that call's. No other answer keeps a digest. An
// answer that changes the arguments approves the changed call.
func exact(ctx context.Context, c *Client, a *Act) error {
	kind, ok := questioned[a.Service]
	if a.Verb != command.Answer || !ok {
		return nil
	}
	var d command.AnswerQuestion
	if err := a.Decode(&d); err != nil {
		return err
	}
	var q stream.Question
	if d.Approved {
		var err error
		if q, err = c.asked(ctx, kind, a.Command, d); err != nil {
			return err
		}
	}
	named, err := bind(&d, q)
	if err != nil || !named {
		return err
	}
	a.Data, err = encoded(a.Verb, d)
	return err
}

// bind binds the answer to the question's call, with the arguments of the answer if it has some. It returns false for an answer
// that names no call.
func bind(d *command.AnswerQuestion, q stream.Question) (bool, error) {
	switch {
	case q.Disputed, q.CallID != "" && d.CallID != "" && d.CallID != q.CallID, q.CallID != "" && d.Digest != "" && d.Digest != q.Digest:
		return false, fault.Newf(fault.InputNotFound, "The approval does not match the call in the question. Nothing was approved. Read the question again, or reject it.")
	case q.CallID != "":
		d.CallID = q.CallID
	case d.Digest == "":
		return false, nil
	}
	if d.Digest, d.Shown = q.Digest, ""; q.CallID != "" && len(d.Arguments) > 0 {
		d.Digest, d.Shown = signature.Digest(q.Tool, d.Arguments), q.Digest
	}
	return true, nil
}

// asked returns the question that an answer names.
func (c *Client) asked(ctx context.Context, kind id.Kind, cmd command.Command, d command.AnswerQuestion) (stream.Question, error) {
	name := d.InputID
	if name == "" {
		name = d.CallID
	}
	if q, ok := c.shown.Find(cmd.Key, cmd.Member, name); ok {
		return q, nil
	}
	return c.e.recall(ctx, subject.Log{Tenant: cmd.Tenant, Kind: kind, Entity: cmd.Key}, cmd.Member, name)
}

// questioned holds the kind of the log that shows the questions which a service takes answers to.
var questioned = map[id.Name]id.Kind{command.Pipeline: id.KindSession, command.Team: id.KindTeam}

// recall finds a question in its log. It returns the zero question if the log does not show it.
func (e *Edge) recall(ctx context.Context, log subject.Log, member, name string) (stream.Question, error) {
	shown := stream.OnlyQuestion(name)
	err := e.Streams.Loader.Do(ctx, func() error {
		_, err := stream.ReadLeft(ctx, e.Log, log, eventlog.Cursor{}, stream.ToEnd, func(one *eventlog.Entry) error {
			shown.Note(log.Entity, one.Event)
			return nil
		})
		return err
	})
	if err != nil && !errors.Is(err, eventlog.ErrDeleted) {
		return stream.Question{}, err
	}
	q, _ := shown.Find(log.Entity, member, name)
	return q, nil
}
