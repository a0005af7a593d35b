package task

import (
	"context"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// retry submits a task like one that has ended without success. The new task names the old one. It belongs to no run, no
// client and no other task, even if the old one did: these have got its end.
func (s *Service) retry(ctx context.Context, in cmd.ParticipantRequest) (cmd.TaskView, error) {
	d, err := data[cmd.TaskRetry](in)
	if err != nil {
		return cmd.TaskView{}, err
	}
	old, err := s.record(ctx, taskLog(in.Tenant, d.TaskID))
	switch {
	case err != nil:
		return cmd.TaskView{}, err
	case old.EndedAt.IsZero():
		return cmd.TaskView{}, fault.New(fault.TaskOpen)
	case old.Status == event.TaskEndCompleted:
		return cmd.TaskView{}, fault.Newf(fault.TaskFinished, "This task has completed, and is not repeated. Submit a new one.")
	}
	t := old.Task
	n := cmd.NewTask{
		TaskID: d.NewID, AgentID: t.WantedID, AgentName: t.WantedName, Capabilities: t.Capabilities, TaskType: t.TaskType,
		Data: t.Data, DataRef: t.DataRef, QueueMS: t.QueueMS, TimeoutMS: t.TimeoutMS, RetryOf: t.TaskID,
	}
	// An object belongs to one log, and goes with it.
	if err := s.payloads.Fill(ctx, in.Tenant, &n); err != nil {
		return cmd.TaskView{}, err
	}
	if _, err := s.payloads.Shrink(ctx, taskLog(in.Tenant, n.TaskID), &n); err != nil {
		return cmd.TaskView{}, err
	}
	in.Data = encode(n)
	return s.submit(ctx, in)
}
