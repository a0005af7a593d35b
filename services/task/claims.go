package task

import (
	"context"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// taskCall is a tool call within a task. Each process that has the task sends one: the call's
// log decides which of them runs the tool.
type taskCall struct {
	event.CallStartedData
	Restored time.Time `json:"restored,omitzero"` // when the task's log was: a command that claimed the call before may be lost
}

// claimCall claims the call for the command. own reports whether the command has the call, and
// again whether its tool may have begun before. Other commands for the call have nothing to do: the
// owning one stays in the queue until the task has the outcome.
func (s *Service) claimCall(ctx context.Context, c cmd.Command, in taskCall) (own, again bool, err error) {
	l := s.openCall(callLog(c.Tenant, in.CallID), in.TaskID)
	if err := l.Sync(ctx); err != nil {
		return false, false, err
	}
	o := l.State()
	again = o.by != ""
	claim := event.CallStartedData{ // the task's log holds the arguments, and deletion removes them with it
		TaskHead: event.TaskHead{TaskID: in.TaskID, Attempt: in.Attempt}, CallID: in.CallID, Idempotent: in.Idempotent,
	}
	err = s.appendCall(ctx, l, c.ID+callBegun, claim, func(o *outside) bool { return o.mayClaim(c.ID, in.Restored) })
	return o.by == c.ID, again, err
}

// mayClaim reports whether a command may claim a call within a task: it is not claimed, or
// was before its task's log was restored from a backup.
func (o *outside) mayClaim(commandID string, restored time.Time) bool {
	return o.by == "" || o.by != commandID && o.begun.Before(restored)
}
