package worker

import (
	"context"
	"slices"

	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

// current returns the job in the log's present state; nil if a restored session does not have it.
func (j *job) current() *conversation.Work { return j.state.Work(j.id) }

// over reports whether a job no longer needs a worker.
func over(w *conversation.Work) bool { return w == nil || w.Ended || w.Failure != nil }

// held reports whether this attempt may still write: errEnded once the job has
// ended, errFenced once another attempt has claimed it.
func (j *job) held() error {
	w := j.current()
	switch {
	case over(w):
		return errEnded
	case w.Claim != j.claim:
		return errFenced
	}
	return nil
}

// append writes events under the fence: each is appended only while this attempt
// holds the run, which is checked again whenever another event comes first.
func (j *job) append(ctx context.Context, data ...event.Data) error {
	ids := make([]string, len(data))
	for i := range ids {
		ids[i] = j.s.cfg.NewID()
	}
	if len(data) > 0 {
		j.what = data[0].EventType()
	}
	err := j.log.Put(ctx, ids, func(_ *conversation.State, left []string) ([]event.Event, error) {
		rest := data[len(data)-len(left):]
		if err := j.held(); err != nil {
			return nil, err
		}
		if !j.open(rest) {
			return nil, errEnded
		}
		return j.events(left, rest...)
	})
	if err == nil {
		j.audit(data)
	}
	return err
}

// audit records the calls of tools that the events end.
func (j *job) audit(list []event.Data) {
	for _, data := range list {
		r := audit.Record{Principal: j.principal(), Kind: string(j.log.Ref.Kind), Entity: j.log.Ref.Entity.String()}
		var call, tool string
		switch d := data.(type) {
		case event.ToolCompletedData:
			call, tool, r.Outcome, r.DurationMS = d.CallID, d.Tool, audit.Done, d.DurationMS
		case event.ToolFailedData:
			call, tool, r.Outcome, r.Code, r.DurationMS = d.CallID, d.Tool, audit.Failed, d.Code, d.DurationMS
		case event.ToolUnknownData:
			call, tool, r.Outcome = d.CallID, d.Tool, audit.Unknown
		default:
			continue
		}
		r.Call, r.Tool = call, tool
		if t, ok := j.servers[tool]; ok && t.Own != "" {
			r.Server, r.Tool = t.Server, t.Own
		}
		if known := j.state.Call(call); known != nil {
			r.Digest = signature.Digest(known.Tool, known.Arguments)
		}
		asked, _ := j.state.Approval(call)
		r.Input = asked.InputID
		j.s.deps.Audit.Record(audit.ToolCalled, j.tenant, r)
	}
}

// open reports whether the messages that the events close are still open. If one is not,
// another process is ending the job: that takes two events, the first of which closes
// the unfinished message.
func (j *job) open(list []event.Data) bool {
	for _, data := range list {
		switch d := data.(type) {
		case event.MessageCompletedData:
			if !slices.Contains(j.current().Open, d.MessageID) {
				return false
			}
		case event.MessageDiscardedData:
			if !slices.Contains(j.current().Open, d.MessageID) {
				return false
			}
		}
	}
	return true
}

// saying is held for the text of a message, which nothing may follow once it is closed.
func (j *job) saying(msg string) error {
	err := j.held()
	if err == nil && !slices.Contains(j.current().Open, msg) {
		return errEnded
	}
	return err
}

// events returns the events with the ids.
func (j *job) events(ids []string, list ...event.Data) ([]event.Event, error) {
	out := make([]event.Event, 0, len(list))
	for i, data := range list {
		e, err := event.New(j.log.Ref, ids[i], source, j.s.cfg.Now(), data)
		if err != nil {
			return nil, err
		}
		e.TraceParent = j.trace
		out = append(out, e)
	}
	return out, nil
}
