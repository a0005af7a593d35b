package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// exact completes an approval with the call that the person was asked about, so that the signature covers it: the
// question that this connection has shown, or else that of the log. A digest that the client sends stays.
func (c *conn) exact(ctx context.Context, cmd *command.Command) error {
	kind, ok := questioned[cmd.Service]
	if cmd.Verb != command.Answer || !ok {
		return nil
	}
	var d command.AnswerQuestion
	if err := cmd.Decode(&d); err != nil {
		return err
	}
	if !d.Approved || d.CallID != "" && d.Digest != "" {
		return nil
	}
	name := d.InputID
	if name == "" {
		name = d.CallID
	}
	q, ok := c.questions.Find(cmd.Key, name)
	if !ok {
		var err error
		if q, err = c.s.recall(ctx, subject.Log{Tenant: cmd.Tenant, Kind: kind, Entity: cmd.Key}, name); err != nil {
			return err
		}
	}
	if q.CallID == "" {
		return nil
	}
	if d.CallID == "" {
		d.CallID = q.CallID
	}
	if d.Digest == "" {
		d.Digest = q.Digest
	}
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode %s: %w", cmd.Verb, err)
	}
	cmd.Data = data
	return nil
}

// questioned holds the kind of the log that shows the questions which a service takes answers to.
var questioned = map[id.Name]id.Kind{command.Pipeline: id.KindSession, command.Team: id.KindTeam}

// recall finds a question in its log. It returns the zero question if the log does not show it.
func (s *Server) recall(ctx context.Context, log subject.Log, name string) (stream.Question, error) {
	var shown stream.Questions
	read := func(after eventlog.Cursor) error {
		return s.dep.Log.Read(ctx, log, after, func(e *eventlog.Entry) error {
			shown.Note(log.Entity, e.Event)
			return nil
		})
	}
	err := s.shared.Streams.Loader.Do(ctx, func() error {
		err := read(eventlog.Cursor{})
		if gone, ok := errors.AsType[*eventlog.TruncatedError](err); ok {
			err = read(eventlog.Cursor{Seq: gone.First - 1})
		}
		return err
	})
	if err != nil && !errors.Is(err, eventlog.ErrDeleted) {
		return stream.Question{}, err
	}
	q, _ := shown.Find(log.Entity, name)
	return q, nil
}
