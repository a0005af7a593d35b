// Package approval makes an approval one of exactly the call that a person was asked about.
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Questions finds the questions of logs. It is safe for concurrent use.
type Questions struct {
	Log     *eventlog.Store
	Streams *stream.Source
}

// Exact makes an approval one of the call that the person was asked about, so that the signature covers it. The call is
// that of the question as the connection has shown it, or else as the log shows it: shown is nil for clients without a
// connection. A digest that the client sends has to be that call's. No other answer keeps a digest. An answer that changes
// the arguments approves the changed call.
func (x Questions) Exact(ctx context.Context, shown *stream.Questions, cmd *command.Command) error {
	kind, ok := questioned[cmd.Service]
	if cmd.Verb != command.Answer || !ok {
		return nil
	}
	var d command.AnswerQuestion
	if err := cmd.Decode(&d); err != nil {
		return err
	}
	var q stream.Question
	if d.Approved {
		var err error
		if q, err = x.asked(ctx, shown, kind, *cmd, d); err != nil {
			return err
		}
	}
	named, err := exact(&d, q)
	if err != nil || !named {
		return err
	}
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode %s: %w", cmd.Verb, err)
	}
	cmd.Data = data
	return nil
}

// exact makes the answer one of the question's call, with the arguments of the answer if it has some. It returns false for an answer
// that names no call.
func exact(d *command.AnswerQuestion, q stream.Question) (bool, error) {
	switch {
	case q.Disputed, q.CallID != "" && d.CallID != "" && d.CallID != q.CallID, q.CallID != "" && d.Digest != "" && d.Digest != q.Digest:
		return false, fault.Newf(fault.InputNotFound, "The approval is for another call than the one that the question shows. Nothing was approved. Look at the question again, or reject it.")
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
func (x Questions) asked(ctx context.Context, shown *stream.Questions, kind id.Kind, cmd command.Command, d command.AnswerQuestion) (stream.Question, error) {
	name := d.InputID
	if name == "" {
		name = d.CallID
	}
	if q, ok := shown.Find(cmd.Key, cmd.Member, name); ok {
		return q, nil
	}
	return x.recall(ctx, subject.Log{Tenant: cmd.Tenant, Kind: kind, Entity: cmd.Key}, cmd.Member, name)
}

// questioned holds the kind of the log that shows the questions which a service takes answers to.
var questioned = map[id.Name]id.Kind{command.Pipeline: id.KindSession, command.Team: id.KindTeam}

// recall finds a question in its log. It returns the zero question if the log does not show it.
func (x Questions) recall(ctx context.Context, log subject.Log, member, name string) (stream.Question, error) {
	shown := stream.OnlyQuestion(name)
	read := func(after eventlog.Cursor) error {
		return x.Log.Read(ctx, log, after, func(e *eventlog.Entry) error {
			shown.Note(log.Entity, e.Event)
			return nil
		})
	}
	err := x.Streams.Loader.Do(ctx, func() error {
		err := read(eventlog.Cursor{})
		if gone, ok := errors.AsType[*eventlog.TruncatedError](err); ok {
			err = read(eventlog.Cursor{Seq: gone.First - 1})
		}
		return err
	})
	if err != nil && !errors.Is(err, eventlog.ErrDeleted) {
		return stream.Question{}, err
	}
	q, _ := shown.Find(log.Entity, member, name)
	return q, nil
}
