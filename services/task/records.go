package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/eventlog"
	eventindex "github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/ledger"
)

// records reads tasks from their logs, for those that see them.
type records struct {
	*base

	listed *eventindex.Index // of tasks and their questions
}

// minScan is the least number of entries that one read of the index returns where not all of them are shown.
const minScan = 100

// maxScan bounds the entries of the index that one answer looks at: a page of a principal that sees few of them is short or empty,
// and its next continues.
const maxScan = 1000

// list answers with a page of the tasks that the principal sees, the newest change first, in the order of the index. Each is
// folded from its log, and stored results stay references.
func (r *records) list(ctx context.Context, in cmd.TaskListRequest) (api.TaskPage, error) {
	before, err := eventindex.ParsePlace(in.Before)
	if err != nil {
		return api.TaskPage{}, err
	}
	limit, room := max(in.Limit, 1), int(r.deps.Conn.NATS().MaxPayload())-listEnvelope
	page := api.TaskPage{Tasks: []api.TaskSummary{}}
	least := 1
	if !in.All {
		least = minScan
	}
	next, err := newest.Search[eventindex.Stored]{
		Limit: limit, Least: least, Most: maxScan, AtOnce: maxScan,
		Place: func(one *eventindex.Stored) uint64 { return one.Sequence },
		Read: func(before uint64, entries int) (newest.Part[eventindex.Stored], error) {
			part, err := r.listed.Page(ctx, in.Tenant, id.KindTask, before, entries)
			n := len(part.Summaries)
			return newest.Part[eventindex.Stored]{Entries: part.Summaries, Looked: n, More: part.More && n > 0}, err
		},
		Take: func(of *eventindex.Stored) (newest.Verdict, error) {
			one, size, err := r.summary(ctx, of, in)
			if err != nil || size == 0 {
				return newest.Skipped, err
			}
			return addTask(&page, &room, one, size), nil
		},
	}.Before(before)
	if err != nil {
		return api.TaskPage{}, err
	}
	if next != 0 {
		page.Next, page.More = strconv.FormatUint(next, 10), true
	}
	return page, nil
}

// addTask appends a task of the size to the page, unless the page has no room for it. The first one has.
func addTask(page *api.TaskPage, room *int, one api.TaskSummary, size int) newest.Verdict {
	if *room < size && len(page.Tasks) > 0 {
		return newest.Full
	}
	page.Tasks = append(page.Tasks, one)
	*room -= size
	return newest.Taken
}

// summary returns a task of the list and its size there, 0 for one that is gone or that the principal does not see.
func (r *records) summary(ctx context.Context, of *eventindex.Stored, in cmd.TaskListRequest) (out api.TaskSummary, size int, err error) {
	if of.Gone || !in.All && (!of.Known || !r.shows(in.Tenant, of.Owner, in.Principal, false)) {
		return out, 0, nil
	}
	one, err := r.record(ctx, of.Log)
	if errors.Is(err, fault.New(fault.TaskNotFound)) || errors.Is(err, eventlog.ErrDeleted) {
		return out, 0, nil
	}
	if err != nil {
		return out, 0, err
	}
	b, err := json.Marshal(one.TaskSummary)
	if err != nil {
		return out, 0, fmt.Errorf("encode a task: %w", err)
	}
	return one.TaskSummary, len(b) + 1, nil
}

// show answers with a task as it is now. One of another tenant, or that the principal does not see, does not exist.
func (r *records) show(ctx context.Context, in cmd.ParticipantRequest) (cmd.TaskView, error) {
	d, err := data[cmd.TaskRefData](in)
	if err != nil {
		return cmd.TaskView{}, err
	}
	unknown := assignment.Unknown()
	if d.TaskID == "" {
		return cmd.TaskView{}, unknown
	}
	st, err := ledger.Fold(ctx, r.deps.Log, taskLog(in.Tenant, d.TaskID), (*assignment.State).Apply)
	switch {
	case err != nil:
		return cmd.TaskView{}, err
	case st.Created.IsZero(), !r.shows(in.Tenant, st.Owner(), in.Principal, in.All):
		return cmd.TaskView{}, unknown
	}
	return st.View(), nil
}

// read answers with a task and its input, if the principal sees it. Stored payloads stay references.
func (r *records) read(ctx context.Context, in cmd.ReadTaskRequest) (api.TaskRecord, error) {
	one, err := r.record(ctx, subject.Log{Tenant: in.Tenant, Kind: id.KindTask, Entity: in.Task})
	if err == nil && !r.shows(in.Tenant, one.Task.Principal, in.Principal, in.All) {
		return api.TaskRecord{}, fault.New(fault.TaskNotFound)
	}
	return one, err
}

// record folds a task's log.
func (r *records) record(ctx context.Context, log subject.Log) (api.TaskRecord, error) {
	var st assignment.State
	var out api.TaskRecord
	err := r.deps.Log.Read(ctx, log, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		out.UpdatedAt, out.LastSeq = e.Time, e.Sequence
		return st.Apply(e.Event)
	})
	var cut *eventlog.TruncatedError
	if errors.As(err, &cut) || err == nil && st.Created.IsZero() {
		return out, fault.New(fault.TaskNotFound)
	}
	out.TaskView, out.Task, out.TaskType, out.Released = st.View(), st.Task(), st.Task().TaskType, st.Released()
	return out, err
}

// shows reports whether the principal sees a task of the owner. all says that it sees every task of the tenant.
func (r *records) shows(t id.Tenant, owner, principal string, all bool) bool {
	return r.cfg.Rules.Access.MaySee(t, owner, access.Person{Subject: principal, Operator: all})
}

// isOver reports whether a task has ended, or its log is deleted.
func (r *records) isOver(ctx context.Context, t id.Tenant, task id.Entity) (bool, error) {
	st, err := ledger.Fold(ctx, r.deps.Log, subject.Log{Tenant: t, Kind: id.KindTask, Entity: task}, (*assignment.State).Apply)
	if errors.Is(err, eventlog.ErrDeleted) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return st.Created.IsZero() || st.Done(), nil
}
