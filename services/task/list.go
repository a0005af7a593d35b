package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/waggle-dev/waggle/internal/eventlog"
	eventindex "github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
)

// listEnvelope bounds the size of an answer beside its tasks.
const listEnvelope = 8 << 10

// minScan is the least number of entries that one read of the index returns where not all of them are shown.
const minScan = 100

// maxScan bounds the entries of the index that one answer looks at: a page of a principal that sees few of them is short or empty,
// and its next continues.
const maxScan = 1000

// listTasks answers with a page of the tasks that the principal sees, the newest change first, in the order of the index. Each is
// folded from its log, and stored results stay references.
func (s *Service) listTasks(ctx context.Context, in cmd.TaskListRequest) (api.TaskPage, error) {
	before, err := eventindex.ParsePlace(in.Before)
	if err != nil {
		return api.TaskPage{}, err
	}
	limit, room := max(in.Limit, 1), int(s.deps.Conn.NATS().MaxPayload())-listEnvelope
	page := api.TaskPage{Tasks: []api.TaskSummary{}}
	least := 1
	if !in.All {
		least = minScan
	}
	for scanned := 0; ; {
		part, err := s.listed.Page(ctx, in.Tenant, id.KindTask, before, min(max(limit-len(page.Tasks), least), maxScan-scanned))
		if err != nil {
			return api.TaskPage{}, err
		}
		for i := range part.Summaries {
			if len(page.Tasks) == limit {
				part.More = true
				break
			}
			one, size, err := s.summary(ctx, &part.Summaries[i], in)
			if err != nil {
				return api.TaskPage{}, err
			}
			if full := addTask(&page, &room, one, size); full {
				page.Next, page.More = strconv.FormatUint(before, 10), true
				return page, nil
			}
			before = part.Summaries[i].Sequence
		}
		scanned += len(part.Summaries)
		if !part.More || len(part.Summaries) == 0 {
			return page, nil
		}
		if len(page.Tasks) == limit || scanned >= maxScan {
			page.Next, page.More = strconv.FormatUint(before, 10), true
			return page, nil
		}
	}
}

// addTask appends a task of the size to the page, unless the size is 0, and reports whether the page has no room for it. The first one has.
func addTask(page *api.TaskPage, room *int, one api.TaskSummary, size int) (full bool) {
	if size == 0 {
		return false
	}
	if *room < size && len(page.Tasks) > 0 {
		return true
	}
	page.Tasks = append(page.Tasks, one)
	*room -= size
	return false
}

// summary returns a task of the list and its size there, 0 for one that is gone or that the principal does not see.
func (s *Service) summary(ctx context.Context, of *eventindex.Stored, in cmd.TaskListRequest) (out api.TaskSummary, size int, err error) {
	if of.Gone || !in.All && (!of.Known || !s.shows(in.Tenant, of.Owner, in.Principal, false)) {
		return out, 0, nil
	}
	r, err := s.record(ctx, of.Log)
	if errors.Is(err, fault.New(fault.TaskNotFound)) || errors.Is(err, eventlog.ErrDeleted) {
		return out, 0, nil
	}
	if err != nil {
		return out, 0, err
	}
	b, err := json.Marshal(r.TaskSummary)
	if err != nil {
		return out, 0, fmt.Errorf("encode a task: %w", err)
	}
	return r.TaskSummary, len(b) + 1, nil
}

// readTask answers with a task and its input, if the principal sees it. Stored payloads stay references.
func (s *Service) readTask(ctx context.Context, in cmd.ReadTaskRequest) (api.TaskRecord, error) {
	r, err := s.record(ctx, subject.Log{Tenant: in.Tenant, Kind: id.KindTask, Entity: in.Task})
	if err == nil && !s.shows(in.Tenant, r.Task.Principal, in.Principal, in.All) {
		return api.TaskRecord{}, fault.New(fault.TaskNotFound)
	}
	return r, err
}

// record folds a task's log.
func (s *Service) record(ctx context.Context, log subject.Log) (api.TaskRecord, error) {
	var st assignment.State
	var out api.TaskRecord
	err := s.deps.Log.Read(ctx, log, eventlog.Cursor{}, func(e *eventlog.Entry) error {
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
