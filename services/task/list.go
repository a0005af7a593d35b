package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
)

// listEnvelope bounds the size of an answer beside its tasks.
const listEnvelope = 8 << 10

// listTasks answers with a page of tasks, the newest change first. Stored results stay references.
func (s *Service) listTasks(ctx context.Context, in cmd.TaskListRequest) (api.TaskPage, error) {
	before, err := parseMark(in.Before)
	if err != nil {
		return api.TaskPage{}, err
	}
	heads, err := s.deps.Log.Heads(ctx, in.Tenant, id.KindTask)
	if err != nil {
		return api.TaskPage{}, err
	}
	room := int(s.deps.Conn.NATS().MaxPayload()) - listEnvelope
	page := api.TaskPage{Tasks: []api.TaskSummary{}}
	for i, h := range heads {
		if !before.precedes(h) {
			continue
		}
		if len(page.Tasks) > 0 && len(page.Tasks) >= in.Limit {
			page.Next, page.More = markOfHead(heads[i-1]), true
			break
		}
		one, err := s.summary(ctx, h.Subject)
		switch {
		case errors.Is(err, fault.New(fault.TaskNotFound)):
			continue // its head has expired meanwhile
		case err != nil:
			return api.TaskPage{}, err
		}
		b, err := json.Marshal(one)
		if err != nil {
			return api.TaskPage{}, fmt.Errorf("encode a task: %w", err)
		}
		if room -= len(b) + 1; room < 0 && len(page.Tasks) > 0 {
			page.Next, page.More = markOfHead(heads[i-1]), true
			break
		}
		page.Tasks = append(page.Tasks, one)
	}
	return page, nil
}

func (s *Service) summary(ctx context.Context, name string) (api.TaskSummary, error) {
	log, err := subject.ParseName(name)
	if err != nil {
		return api.TaskSummary{}, err
	}
	r, err := s.record(ctx, log)
	return r.TaskSummary, err
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
	out.TaskView, out.Task = st.View(), st.Task()
	return out, err
}

// mark is a place in the list of tasks: the tasks after it changed earlier.
type mark struct {
	at      time.Time
	subject string
}

// parseMark reads the member next of a page. The empty text is the beginning.
func parseMark(s string) (mark, error) {
	if s == "" {
		return mark{}, nil
	}
	at, name, ok := strings.Cut(s, "_")
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || !ok || name == "" {
		return mark{}, fault.Newf(fault.InvalidField, "before must be the next of a page.").At("before")
	}
	return mark{t, name}, nil
}

// precedes reports whether a task comes after the mark.
func (m mark) precedes(e *eventlog.Entry) bool {
	if m.subject == "" {
		return true
	}
	if c := e.Time.Compare(m.at); c != 0 {
		return c < 0
	}
	return e.Subject > m.subject
}

func markOfHead(e *eventlog.Entry) string {
	return e.Time.UTC().Format(time.RFC3339Nano) + "_" + e.Subject
}
