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

// listTasks answers with a page of tasks, the newest change first, in the order of the index. Each is folded from its log,
// and stored results stay references.
func (s *Service) listTasks(ctx context.Context, in cmd.TaskListRequest) (api.TaskPage, error) {
	before, err := eventindex.ParsePlace(in.Before)
	if err != nil {
		return api.TaskPage{}, err
	}
	limit, room := max(in.Limit, 1), int(s.deps.Conn.NATS().MaxPayload())-listEnvelope
	page := api.TaskPage{Tasks: []api.TaskSummary{}}
	for {
		part, err := s.listed.Page(ctx, in.Tenant, id.KindTask, before, limit-len(page.Tasks))
		if err != nil {
			return api.TaskPage{}, err
		}
		for i := range part.Summaries {
			one, size, err := s.summary(ctx, &part.Summaries[i])
			switch {
			case err != nil:
				return api.TaskPage{}, err
			case size > 0 && room < size && len(page.Tasks) > 0:
				page.Next, page.More = strconv.FormatUint(before, 10), true
				return page, nil
			case size > 0:
				page.Tasks, room = append(page.Tasks, one), room-size
			}
			before = part.Summaries[i].Sequence
		}
		if !part.More || len(part.Summaries) == 0 {
			return page, nil
		}
		if len(page.Tasks) == limit {
			page.Next, page.More = strconv.FormatUint(before, 10), true
			return page, nil
		}
	}
}

// summary returns a task of the list and its size there, 0 for one that is gone.
func (s *Service) summary(ctx context.Context, of *eventindex.Stored) (out api.TaskSummary, size int, err error) {
	if of.Gone {
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

// readTask answers with a task and its input. Stored payloads stay references.
func (s *Service) readTask(ctx context.Context, in cmd.ReadTaskRequest) (api.TaskRecord, error) {
	return s.record(ctx, subject.Log{Tenant: in.Tenant, Kind: id.KindTask, Entity: in.Task})
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
