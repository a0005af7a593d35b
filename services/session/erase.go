package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// delete handles cmd.Delete: it stops the active run, ends the log with its tombstone, and then
// removes all other data of the session. Every step may be repeated, so a redelivery continues
// after a crash. It ignores an unknown session.
func (d *responder) delete(ctx context.Context, c cmd.Command) error {
	log := sessionLog(c.Tenant, c.Key)
	end, err := d.end(ctx, log, c)
	if err != nil {
		return fmt.Errorf("delete session %s: %w", log.Entity, err)
	}
	if end == 0 {
		d.logger.Debug().Stringer("log", log).Msg("deletion skipped: session unknown")
		return nil
	}
	if err := d.snapshots.Erase(ctx, log, end); err != nil {
		return err
	}
	if err := d.erase(ctx, log, c); err != nil {
		return fmt.Errorf("delete session %s: %w", log.Entity, err)
	}
	d.logger.Info().Stringer("log", log).Str("command", c.ID).Msg("session deleted")
	return nil
}

// end stops the active run of the session, recalls its tasks from the swarm, and appends the
// tombstone. It returns the seq of the tombstone, 0 if the session is unknown. The recall comes first, because the tombstone
// does not list the tasks.
func (d *responder) end(ctx context.Context, log subject.Log, c cmd.Command) (seq uint64, err error) {
	l := d.openLog(log, (*folded).foldAny)
	if err := l.Sync(ctx); err != nil {
		return 0, err
	}
	recalled := map[string]bool{}
	for {
		if err := d.recall(ctx, log, c, &l.State().state, recalled); err != nil {
			return 0, err
		}
		more, now := false, d.now()
		_, err := l.Step(ctx, func(f *folded) (decision.Decision, error) {
			if more = len(given(log, &f.state, recalled)) > 0; more {
				return decision.Decision{}, nil
			}
			return f.tombstone(c, now)
		})
		if err != nil || !more {
			return l.State().state.Seq, err
		}
	}
}

// tombstone returns what ends the log. A log that cannot be folded, because its head has
// expired or it is damaged, gets its tombstone all the same: workers stop there.
func (f *folded) tombstone(c cmd.Command, now time.Time) (decision.Decision, error) {
	state := &f.state
	if f.damaged && !state.Deleted {
		state = &conversation.State{Seq: state.Seq}
	}
	return state.Decide(c, now, conversation.Rules{})
}

// given returns the tasks of the swarm that belong to the session and are not recalled.
func given(log subject.Log, state *conversation.State, recalled map[string]bool) (tasks []string) {
	for _, w := range state.Delegated() {
		task := w.SwarmTask
		if task == "" {
			task = conversation.SwarmTask(log, w.ID) // it may wait for its agent, or not be made yet
		}
		if !recalled[task] {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// recall has the session's tasks of the swarm cancelled and deleted.
func (d *responder) recall(ctx context.Context, log subject.Log, c cmd.Command, state *conversation.State, recalled map[string]bool) error {
	for _, task := range given(log, state, recalled) {
		key, err := id.ParseEntity(task)
		if err != nil {
			return fmt.Errorf("recall task %s: %w", task, err)
		}
		reason, err := json.Marshal(cmd.CancelTaskData{TaskID: task, Reason: "its session was deleted"})
		if err != nil {
			return fmt.Errorf("recall task %s: %w", task, err)
		}
		order := cmd.Command{
			Service: cmd.Task, Tenant: log.Tenant, Key: key, Principal: c.Principal, Operator: c.Operator, Origin: c.Proof(), Source: source, Time: d.now(), TraceParent: telemetry.Inject(ctx),
		}
		order.ID, order.Verb, order.Data = c.ID+".cancel", cmd.CancelTask, reason
		if err := d.commands.Send(ctx, order); err != nil {
			return err
		}
		order.ID, order.Verb, order.Data = c.ID+".delete", cmd.DeleteTask, nil
		if err := d.commands.Send(ctx, order); err != nil {
			return err
		}
		recalled[task] = true
	}
	return nil
}

// eraseTask handles cmd.EraseTask: it removes the data of a swarm task whose log the task service
// has ended.
func (d *responder) eraseTask(ctx context.Context, c cmd.Command) error {
	log := subject.Log{Tenant: c.Tenant, Kind: id.KindTask, Entity: c.Key}
	if err := d.erase(ctx, log, c); err != nil {
		return fmt.Errorf("erase task %s: %w", log.Entity, err)
	}
	return nil
}

// services are those that have timers or dead letters of a log of the kind.
var services = map[id.Kind][]id.Name{id.KindSession: {cmd.Session, cmd.Pipeline, cmd.Worker}, id.KindTask: {cmd.Task}}

// erase removes the data of a deleted log, the events last: a tombstone alone marks the deletion as
// complete.
func (d *responder) erase(ctx context.Context, log subject.Log, c cmd.Command) error {
	if err := d.eraseObjects(ctx, log); err != nil {
		return err
	}
	if err := d.purge(ctx, subject.BucketStream(subject.BucketAcks), subject.BucketSubject(subject.BucketAcks, subject.AckKeysOf(log))); err != nil {
		return err
	}
	for _, service := range services[log.Kind] {
		if slices.Contains(subject.TimerServices(), service) {
			if err := d.purge(ctx, subject.TimerStream(service), subject.TimersFor(service, log.Tenant, log.Entity)); err != nil {
				return err
			}
		}
		if err := d.purge(ctx, subject.StreamDead, subject.DeadFor(service, log.Tenant, log.Entity)); err != nil {
			return err
		}
	}
	if log.Kind == id.KindSession {
		if err := d.quota.Free(ctx, log.Tenant, log.Entity); err != nil {
			return err
		}
	}
	if err := d.index.Drop(ctx, log); err != nil {
		return err
	}
	removed, err := d.log.Erase(ctx, log)
	if err != nil {
		return err
	}
	d.audit.Record(audit.Deleted, log.Tenant, audit.Record{
		ID: c.ID + "." + log.Entity.String() + ".deletion", Principal: c.Principal, Kind: string(log.Kind), Entity: log.Entity.String(), Command: c.ID,
		Count: int64(removed), //nolint:gosec // a log is shorter than 2^63
	})
	return nil
}

// eraseObjects removes the data that the log's events refer to and do not hold themselves.
func (d *responder) eraseObjects(ctx context.Context, log subject.Log) error {
	n, err := d.payloads.Delete(ctx, log)
	if err == nil && n > 0 {
		d.logger.Info().Stringer("log", log).Int("objects", n).Msg("objects deleted")
	}
	return err
}

// purge removes the messages of a stream that match the filter.
func (d *responder) purge(ctx context.Context, stream, filter string) error {
	s, err := d.conn.JS().Stream(ctx, stream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(filter))
	}
	if err != nil {
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("purge %s of %s: %w", filter, stream, err))
	}
	return nil
}
