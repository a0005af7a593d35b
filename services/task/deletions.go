package task

import (
	"context"
	"encoding/json"
	"fmt"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/worker/builtin"
)

// deletions deletes tasks.
type deletions struct{ *base }

// delete handles cmd.DeleteTask: the session that gave the task was deleted, and has
// cancelled the task before. The tasks that its agents asked for go with it, as does the
// session in which the built-in agent did it. A task that is not there yet gets its
// tombstone all the same: the command that creates it may be on its way.
func (d *deletions) delete(ctx context.Context, c cmd.Command) error {
	log := subject.Log{Tenant: c.Tenant, Kind: id.KindTask, Entity: c.Key}
	l := ledger.Open(ledger.Config[assignment.State]{Store: d.deps.Log, Source: source, Now: d.cfg.Now, Fold: func(st *assignment.State, e event.Event) error {
		_ = st.Apply(e) // events that cannot be folded are deleted like the rest
		return nil
	}}, log)
	if err := l.Sync(ctx); err != nil {
		return fmt.Errorf("delete task %s: %w", c.Key, err)
	}
	for _, child := range l.State().Given() {
		entity, err := id.ParseEntity(child)
		if err != nil {
			return fmt.Errorf("delete task %s: name its child: %w", c.Key, err)
		}
		cancel := cmd.CancelTaskData{TaskID: child, Reason: "its session was deleted"}
		if err := d.order(ctx, c, cmd.Task, cmd.CancelTask, entity, cancel); err != nil {
			return err
		}
		if err := d.order(ctx, c, cmd.Task, cmd.DeleteTask, entity, nil); err != nil {
			return err
		}
	}
	_, err := l.Update(ctx, func(st *assignment.State) (decision.Decision, error) {
		if st.Deleted {
			return decision.Decision{}, nil
		}
		return decision.Of(decision.Fact{ID: c.ID + ".deleted", Data: event.TaskDeletedData{Reason: "session_deleted"}}), nil
	})
	if err != nil {
		return fmt.Errorf("delete task %s: %w", c.Key, err)
	}
	if err := d.order(ctx, c, cmd.Session, cmd.Delete, builtin.SessionOf(log).Entity, nil); err != nil {
		return err
	}
	return d.order(ctx, c, cmd.Session, cmd.EraseTask, c.Key, nil)
}

// order sends a command that a deletion entails, under an id that a repeat derives again.
func (d *deletions) order(ctx context.Context, c cmd.Command, service, verb id.Name, key id.Entity, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode %s: %w", verb, err)
	}
	return d.send(ctx, cmd.Command{
		ID: c.ID + "." + verb.String(), Service: service, Verb: verb, Tenant: c.Tenant, Key: key, Principal: c.Principal, Operator: c.Operator, Origin: c.Proof(), Data: raw,
	})
}
