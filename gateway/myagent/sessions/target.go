package sessions

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// resolveRun makes out the run that the query names, if it names one, and the position
// from which it is to be shown: the beginning, unless the query says another.
func (m *Multi) resolveRun() (after eventlog.Cursor, err error) {
	if m.target == nil {
		return after, nil
	}
	log, last, _, err := binding.Find(m.c, m.target)
	if err != nil {
		return after, err
	}
	if m.run = log; m.c.Query().Has(binding.QueryAfter) {
		return binding.After(m.c, last)
	}
	return after, nil
}

// locateRun is locate for runs that no session service knows. They have neither a
// language nor clients whose positions are kept.
func (m *Multi) locateRun(ctx context.Context, log subject.Log, req command.AttachRequest) (reply command.AttachReply, after eventlog.Cursor, err error) {
	last, err := m.g.Log.Last(ctx, log)
	switch {
	case err != nil:
		return reply, after, err
	case last.Seq == 0:
		return reply, after, fault.New(fault.RunNotFound)
	case req.Live:
		after = last
	case req.EventID != "":
		after, err = eventlog.ParseCursor(req.EventID)
	case req.After != nil:
		after.Seq = *req.After
	}
	if err != nil || after.Seq > last.Seq {
		return reply, after, fault.New(fault.CursorInvalid).Wrap(err)
	}
	return command.AttachReply{Head: last.Seq}, after, nil
}
