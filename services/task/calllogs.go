package task

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
)

// callLogs reads and writes the logs of calls.
type callLogs struct{ *base }

func callLog(t id.Tenant, callID string) subject.Log {
	return subject.Log{Tenant: t, Kind: id.KindCall, Entity: id.EntityFromExternal(callID)}
}

// logOfCall returns the log of the call outside of any task that a command is for.
func logOfCall(c cmd.Command) subject.Log {
	return subject.Log{Tenant: c.Tenant, Kind: id.KindCall, Entity: c.Key}
}

// open returns the log of a call, of the task or of none.
func (ls *callLogs) open(ref subject.Log, task string) *ledger.Log[outside] {
	return ledger.Open(ledger.Config[outside]{Store: ls.deps.Log, Source: source, Now: ls.cfg.Now, Fold: func(o *outside, e event.Event) error {
		o.task = task
		return o.fold(e)
	}}, ref)
}

// append appends an event to a call's log if it is missing.
func (ls *callLogs) append(ctx context.Context, l *ledger.Log[outside], eventID string, data event.Data, missing func(*outside) bool) error {
	e, err := event.New(l.Ref, eventID, source, ls.cfg.Now(), data)
	if err != nil {
		return command.Permanent(err)
	}
	e.TraceParent = telemetry.Inject(ctx)
	return l.Append(ctx, func(o *outside) ([]event.Event, error) {
		if !missing(o) {
			return nil, nil
		}
		return []event.Event{e}, nil
	})
}

// fill puts the arguments of a call in their place. If they are lost, that is the
// call's outcome.
func (ls *callLogs) fill(ctx context.Context, t id.Tenant, in *event.CallStartedData) (lost *event.CallFinishedData, err error) {
	err = ls.payloads.Fill(ctx, t, in)
	if !errors.Is(err, fault.New(fault.PayloadLost)) {
		return nil, err
	}
	ls.deps.Logger.Error().Err(err).Str("call", in.CallID).Msg("tool call arguments dropped: stored data lost")
	f := fault.New(fault.PayloadLost)
	return &event.CallFinishedData{CallID: in.CallID, Status: callError, Code: string(f.Code), Error: f.Public()}, nil
}

// Suffixes of the ids of events in a call's log. The command's id comes before them.
const (
	callBegun = ".started"
	callOver  = ".finished"
)

// outside is the fold of the log of a call. A tool that could not start may be tried again,
// so the log may have several starts; a tool that has started has one outcome.
type outside struct {
	task    string // set only in a log in which a call within a task is claimed
	started *event.CallStartedData
	by      string // the command that started it
	begun   time.Time
	ended   *event.CallFinishedData
	endedAt uint64 // sequence of the outcome
}

func (o *outside) fold(e event.Event) error {
	switch e.Type {
	case event.CallStarted:
		d, err := event.As[event.CallStartedData](e)
		if err != nil || d.TaskID != o.task {
			return err // a participant has reused the id of a call within a task
		}
		o.started, o.ended = &d, nil
		o.by, o.begun = strings.TrimSuffix(e.ID, callBegun), e.Time
	case event.CallFinished:
		d, err := event.As[event.CallFinishedData](e)
		if err != nil || d.TaskID != o.task {
			return err
		}
		o.started, o.ended, o.endedAt = nil, &d, e.Sequence
	default: // of a later version
	}
	return nil
}

// settled reports whether the call has its final outcome, which every repeat gets.
func (o *outside) settled() bool { return o.ended != nil && !notBegun(fault.Code(o.ended.Code)) }

// open reports whether the tool runs, or ran when its worker died.
func (o *outside) open() bool { return o.started != nil }

// mayBegin reports whether a command may start the call if its sender has seen the log up to the
// sequence: no command has claimed the call, and the sender has no answer yet.
func (o *outside) mayBegin(seen uint64) bool { return !o.settled() && !o.open() && o.endedAt <= seen }

// mayEnd is mayBegin for the outcome that the command reports.
func (o *outside) mayEnd(commandID string, seen uint64) bool {
	return !o.settled() && (!o.open() || o.by == commandID) && o.endedAt <= seen
}

// mayClaim reports whether a command may claim a call within a task: it is not claimed, or
// was before its task's log was restored from a backup.
func (o *outside) mayClaim(commandID string, restored time.Time) bool {
	return o.by == "" || o.by != commandID && o.begun.Before(restored)
}

// notBegun reports whether a call that failed with the code has not started.
func notBegun(code fault.Code) bool {
	switch code {
	case fault.ToolNotFound, fault.ServerNotFound, fault.ServiceNotFound, fault.ToolBadInput, fault.ToolDenied, fault.ToolsDown, fault.ToolsBusy,
		fault.Overloaded, fault.ServiceBusy, fault.QuotaExceeded:
		return true
	}
	return false
}
