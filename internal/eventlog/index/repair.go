package index

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// repair rebuilds the entries of a log from all of its events, and returns the number of entries that were wrong.
func (w *writer) repair(ctx context.Context, log subject.Log) (wrong int, err error) {
	for range tries {
		// The entries are read first: what they know lies in the log by then.
		has, err := w.index.entries(ctx, log)
		if err != nil {
			return wrong, err
		}
		wants, err := w.index.made(ctx, log, has)
		if errors.Is(err, eventlog.ErrDeleted) || err == nil && len(wants) == 0 {
			return w.removed(ctx, log, has)
		}
		if err != nil {
			return wrong, err
		}
		n, err := w.index.reconcile(ctx, log, has, wants)
		if wrong += n; !errors.Is(err, errRaced) {
			return wrong, err
		}
	}
	return wrong, fmt.Errorf("make the entries of %s again: %w", log, errRaced)
}

// entries returns what the index has of a log, by subject.
func (x *Index) entries(ctx context.Context, log subject.Log) (map[string]newest.Entry, error) {
	out := map[string]newest.Entry{}
	for _, filter := range []string{log.Index(), log.Questions("*")} {
		for before := uint64(0); ; {
			p, err := x.exact.Read(ctx, filter, before, maxOpen)
			if err != nil {
				return nil, err
			}
			for _, e := range p.Entries {
				before = e.Sequence
				if _, newer := out[e.Subject]; !newer {
					out[e.Subject] = e
				}
			}
			if !p.More || len(p.Entries) == 0 {
				break
			}
		}
	}
	return out, nil
}

// removed removes the entries of a log without events, and returns their number.
func (w *writer) removed(ctx context.Context, log subject.Log, has map[string]newest.Entry) (n int, err error) {
	for _, e := range has {
		if !isMarker(e.Data) {
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	return n, w.remove(ctx, log)
}

func isMarker(entry []byte) bool {
	var m struct {
		Gone bool `json:"gone"`
	}
	return json.Unmarshal(entry, &m) == nil && m.Gone
}

// reconcile writes the entries that differ from what the index has, and returns their number. It returns errRaced if another process
// has changed one of them meanwhile. The summary comes last, and open questions that are over go only after these are written as
// such: work that was cut short shows.
func (x *Index) reconcile(ctx context.Context, log subject.Log, has map[string]newest.Entry, wants map[string]*nats.Msg) (n int, err error) {
	write := func(name string) error {
		old, want := has[name], wants[name]
		if bytes.Equal(old.Data, want.Data) {
			return nil
		}
		n++
		return x.replace(ctx, want, old.Sequence, false)
	}
	for name := range wants {
		if name == log.Index() {
			continue
		}
		if err := write(name); err != nil {
			return n, err
		}
	}
	for name, e := range has {
		if wants[name] != nil || isMarker(e.Data) {
			continue
		}
		var q Question
		if json.Unmarshal(e.Data, &q) != nil {
			q = Question{} // of another version
		}
		raw, err := Question{LastSeq: q.LastSeq, Gone: true}.encode()
		if err != nil {
			return n, err
		}
		if err := x.replace(ctx, &nats.Msg{Subject: name, Data: raw}, e.Sequence, true); err != nil {
			return n, err
		}
		n++
	}
	return n, write(log.Index())
}

// made returns the entries of a log as all of its events say, by subject: none of a log without events. Events that the log has lost
// at its beginning are known from the entries that the index has.
func (x *Index) made(ctx context.Context, log subject.Log, has map[string]newest.Entry) (map[string]*nats.Msg, error) {
	c, out := change{log: log}, map[string]*nats.Msg{}
	var all turns
	if err := x.fold(ctx, &c, &all); err != nil || c.summary.LastSeq == 0 {
		return nil, err
	}
	waiting := map[string]*Question{}
	if c.first > 1 {
		old, err := x.prepare(ctx, log)
		if err != nil {
			return nil, err
		}
		c.summary, all = old.summary.identity(), nil
		if err := x.fold(ctx, &c, &all); err != nil {
			return nil, err
		}
		c.summary = old.summary
		waiting = older(log, has, c.first, out)
	}
	for _, q := range all.apply(waiting) {
		raw, err := q.encode()
		if err != nil {
			return nil, err
		}
		input, part := id.EntityFromExternal(q.InputID), subject.QuestionsOpen
		if q.State != api.QuestionOpen {
			part = subject.QuestionsOver
			delete(out, log.Question(subject.QuestionsOpen, input))
		}
		name := log.Question(part, input)
		out[name] = &nats.Msg{Subject: name, Data: raw}
	}
	c.summary.Inputs = len(waiting)
	m, err := c.summary.encode(log)
	if err != nil {
		return nil, err
	}
	out[log.Index()] = m
	return out, nil
}

// older keeps the entries of questions that were asked before the first event, and returns those that wait.
func older(log subject.Log, has map[string]newest.Entry, first uint64, keep map[string]*nats.Msg) map[string]*Question {
	waiting := map[string]*Question{}
	for name, e := range has {
		q, err := questionOf(e)
		if err != nil || q.Gone || q.Seq >= first {
			continue
		}
		if q.State == api.QuestionOpen {
			end, over := has[log.Question(subject.QuestionsOver, id.EntityFromExternal(q.InputID))]
			if over && !isMarker(end.Data) {
				continue
			}
			waiting[q.ID] = &q.Question
		}
		keep[name] = &nats.Msg{Subject: name, Data: e.Data}
	}
	return waiting
}

// identity returns what the first events of a log say.
func (s *Summary) identity() Summary {
	return Summary{Known: s.Known, Owner: s.Owner, Dialect: s.Dialect, Question: s.Question, CreatedAt: s.CreatedAt, Team: s.Team, Route: s.Route, Job: s.Job}
}
