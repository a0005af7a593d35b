package session

import (
	"context"
	"errors"
	"time"

	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// env holds the inputs of a decision about a command besides the session.
type env struct {
	now     time.Time
	rules   conversation.Rules
	refused *fault.Fault // why the session may not begin; nil: it may
}

// decide asks the reducer. A session beyond the quota does not begin, and its log stays
// empty: only the sender learns that.
func decide(st *conversation.State, c cmd.Command, e env) (decision.Decision, error) {
	if f := e.refused; f != nil && st.Created.IsZero() {
		return decision.Decision{Direct: event.CommandRefusedData{CommandID: c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field}}, nil
	}
	return st.Decide(c, e.now, e.rules)
}

// over reports whether a session has ended or its log is deleted.
func (d *responder) over(ctx context.Context, t id.Tenant, session id.Entity) (bool, error) {
	log := sessionLog(t, session)
	last, err := d.log.Last(ctx, log)
	if errors.Is(err, eventlog.ErrDeleted) {
		return true, nil
	}
	if err != nil || last.Seq == 0 {
		return err == nil, err
	}
	f, err := foldLog(ctx, d.log, log)
	return err == nil && f.state.Closed, err
}
