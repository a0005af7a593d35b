package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// change is what an update does to the summary of a log.
type change struct {
	log      subject.Log
	summary  Summary
	revision uint64 // of the summary that it replaces; 0: of none
	write    bool
	drop     bool
	read     []uint64 // sequences in the shard of the events that the summary lacked
	first    uint64   // sequence in the log of the first of these; 0: none

	questions []*Question // that have changed
}

// Update brings the summary of a log up to date. A summary of a deleted or expired log goes away.
func (x *Index) Update(ctx context.Context, log subject.Log) error {
	for range tries {
		c, err := x.prepare(ctx, log)
		if err != nil {
			return err
		}
		if err = x.carryOut(ctx, c); !errors.Is(err, errRaced) {
			return err
		}
	}
	return fmt.Errorf("update the summary of %s: %w", log, errRaced)
}

// prepare reads the summary of a log, and the events that it lacks.
func (x *Index) prepare(ctx context.Context, log subject.Log) (change, error) {
	c := change{log: log}
	gone, err := x.load(ctx, &c)
	if err != nil {
		return c, err
	}
	known, open := c.summary.LastSeq, c.summary.Inputs
	var all turns
	err = x.fold(ctx, &c, &all)
	if errors.Is(err, eventlog.ErrBeyondEnd) { // the log was restored from a backup, or has expired
		c.summary, c.read, c.first, known, all = Summary{}, nil, 0, 0, nil
		err = x.fold(ctx, &c, &all)
	}
	switch {
	case errors.Is(err, eventlog.ErrDeleted) || err == nil && c.summary.LastSeq == 0:
		c.drop = c.revision > 0 && !gone
		return c, nil
	case err != nil:
		return c, err
	}
	if c.write = c.summary.LastSeq > known; !c.write || len(all) == 0 {
		return c, nil
	}
	err = x.ask(ctx, &c, known, open, all)
	return c, err
}

// ask notes the questions that the turns change since the known event, when as many were open.
func (x *Index) ask(ctx context.Context, c *change, known uint64, open int, all turns) (err error) {
	waiting, over := map[string]*Question{}, []*Question(nil)
	if open > 0 || known == 0 {
		if waiting, over, err = x.waiting(ctx, c.log); err != nil {
			return err
		}
	}
	if known > 0 && len(waiting) != open {
		if all, err = x.whole(ctx, c, all); err != nil {
			return err
		}
	}
	c.questions = append(over, all.apply(waiting)...)
	c.summary.Inputs = len(waiting)
	return nil
}

// whole returns the turns of all events of the change's log, because a crash has taken questions from the index: the given ones if the
// log has lost its beginning.
func (x *Index) whole(ctx context.Context, c *change, known turns) (turns, error) {
	again, all := change{log: c.log}, turns(nil)
	if err := x.fold(ctx, &again, &all); err != nil || again.first > 1 {
		return known, err
	}
	return slices.DeleteFunc(all, func(t turn) bool { return t.seq > c.summary.LastSeq }), nil
}

// load reads the summary of the change's log, and reports whether a marker stands for it.
func (x *Index) load(ctx context.Context, c *change) (gone bool, err error) {
	m, err := x.newest.Last(ctx, c.log.Index())
	if errors.Is(err, newest.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.revision = m.Sequence
	broken := json.Unmarshal(m.Data, &c.summary)
	if gone = c.summary.Gone; broken != nil || gone || c.summary.Format != format {
		c.summary = Summary{} // a marker, or of another version
	}
	return gone, nil
}

// fold reads the events of the change's log that its summary lacks.
func (x *Index) fold(ctx context.Context, c *change, all *turns) error {
	s := &c.summary
	visit := func(e *eventlog.Entry) error {
		s.add(e)
		all.add(c.log, s, e)
		c.read = append(c.read, e.Stream)
		if c.first == 0 {
			c.first = e.Sequence
		}
		return nil
	}
	for {
		after := eventlog.Cursor{Seq: s.LastSeq, Stream: s.Position}
		err := x.log.ReadOwn(ctx, c.log, after, visit)
		cut, ok := errors.AsType[*eventlog.TruncatedError](err)
		if !ok || cut.First <= s.LastSeq+1 {
			return err
		}
		s.LastSeq, s.Position = cut.First-1, 0
	}
}

// carryOut writes or removes the summary. It returns errRaced if another process has changed it meanwhile.
func (x *Index) carryOut(ctx context.Context, c change) error {
	if c.drop {
		return x.Drop(ctx, c.log)
	}
	if !c.write {
		return nil
	}
	if err := x.settle(ctx, c); err != nil {
		return err
	}
	done, err := x.begin(c)
	if err != nil {
		return err
	}
	return written(ctx, c, done)
}

// Drop removes the summary and the questions of a log that is deleted or has expired: such a log gets no other ones.
func (x *Index) Drop(ctx context.Context, log subject.Log) error {
	s, err := x.conn.JS().Stream(ctx, subject.StreamIndex)
	for _, filter := range []string{log.Index(), log.Questions("*")} {
		if err == nil {
			err = s.Purge(ctx, jetstream.WithPurgeSubject(filter))
		}
	}
	if err != nil {
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("remove the summary of %s: %w", log, err))
	}
	return nil
}

// begin sends the summary. The order of calls is the order in the stream.
func (x *Index) begin(c change) (jetstream.PubAckFuture, error) {
	m, err := c.summary.encode(c.log)
	if err != nil {
		return nil, err
	}
	done, err := x.conn.JS().PublishMsgAsync(m, jetstream.WithExpectLastSequencePerSubject(c.revision))
	if err != nil {
		return nil, fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("write the summary of %s: %w", c.log, err))
	}
	return done, nil
}

// encode returns the entry of the log's summary.
func (s Summary) encode(log subject.Log) (*nats.Msg, error) {
	s.Format = format
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode the summary of %s: %w", log, err)
	}
	return &nats.Msg{Subject: log.Index(), Data: raw, Header: nats.Header{event.HeaderSeq: {strconv.FormatUint(s.LastSeq, 10)}}}, nil
}

// written waits until the bus has stored the summary.
func written(ctx context.Context, c change, done jetstream.PubAckFuture) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-done.Ok():
		return nil
	case err := <-done.Err():
		if wrongLast(err) {
			return errRaced
		}
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("write the summary of %s: %w", c.log, err))
	}
}

// settle writes the questions of a change. One that is over leaves a marker among the open ones for a while: a slower
// writer cannot open it again.
func (x *Index) settle(ctx context.Context, c change) error {
	for _, q := range c.questions {
		input, at := id.EntityFromExternal(q.InputID), subject.QuestionsOpen
		if q.State != api.QuestionOpen {
			at = subject.QuestionsOver
		}
		if err := x.put(ctx, c.log.Question(at, input), *q); err != nil {
			return err
		}
		if q.State == api.QuestionOpen {
			continue
		}
		if err := x.put(ctx, c.log.Question(subject.QuestionsOpen, input), Question{LastSeq: q.LastSeq, Gone: true}); err != nil {
			return err
		}
	}
	return nil
}
