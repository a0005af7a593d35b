package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/tools"
)

// CallQueue is the queue of tool calls within tasks, which any replica may take.
var CallQueue = id.MustName("task-call")

var runCall = id.MustName("run") // data: taskCall

// Outcomes of calls.
const (
	callSuccess = "success"
	callError   = "error"
	callUnknown = "unknown"
)

// callDeliveries is how often a call is delivered to a worker: once, and several times more so that
// some worker survives to report the outcome.
const callDeliveries = 5

// lostCall is the outcome of a call whose tool may have begun, and whose result is lost.
func lostCall(callID string) event.CallFinishedData {
	lost := fault.New(fault.ServiceLost)
	return event.CallFinishedData{CallID: callID, Status: callUnknown, Code: string(lost.Code), Error: lost.Public()}
}

// fillCall puts the arguments of a call in their place. If they are lost, that is the
// call's outcome.
func (s *Service) fillCall(ctx context.Context, t id.Tenant, in *event.CallStartedData) (lost *event.CallFinishedData, err error) {
	err = s.payloads.Fill(ctx, t, in)
	if !errors.Is(err, fault.New(fault.PayloadLost)) {
		return nil, err
	}
	s.deps.Logger.Error().Err(err).Str("call", in.CallID).Msg("tool call arguments dropped: stored data lost")
	f := fault.New(fault.PayloadLost)
	return &event.CallFinishedData{CallID: in.CallID, Status: callError, Code: string(f.Code), Error: f.Public()}, nil
}

// outcome says what became of a call.
func outcome(callID string, r tools.Result, err error) event.CallFinishedData {
	out := event.CallFinishedData{CallID: callID, Status: callSuccess, Result: r.Data}
	if err != nil {
		f := fault.From(err, "")
		out.Status, out.Result, out.Code, out.Error, out.Details = callError, nil, string(f.Code), f.Public(), f.Details
		switch f.Code {
		case fault.ToolLost, fault.ServiceLost:
			out.Status = callUnknown
		case fault.ToolBadInput:
			out.Field = f.Field
		}
		return out
	}
	if len(out.Result) == 0 {
		out.Result = encode(r.Text)
	}
	if r.IsError {
		out.Status, out.Code, out.Error = callError, string(fault.ToolFailed), fault.New(fault.ToolFailed).Public()
	}
	return out
}

// notes returns what sends a service's notifications on to the task. Those that the
// bus does not take are lost: the call is not harmed.
func (s *Service) notes(ctx context.Context, c cmd.Command, in event.CallStartedData) func(tools.Notification) {
	n := 0
	return func(note tools.Notification) {
		n++
		err := s.Send(ctx, cmd.Command{
			ID: fmt.Sprintf("%s.note.%d", in.CallID, n), Service: cmd.Task, Verb: cmd.NotifyCall, Tenant: c.Tenant, Key: c.Key,
			Data: encode(event.CallNotifiedData{
				CallID: in.CallID, Server: in.Server, ServerName: in.ServerName,
				NotificationType: note.Type, Message: note.Message, Data: note.Data, At: note.At,
			}),
		})
		if err != nil {
			s.deps.Logger.Debug().Err(err).Str("call", in.CallID).Msg("tool call notification dropped")
		}
	}
}

// ended reports the outcome of a call to its task.
func (s *Service) ended(ctx context.Context, c cmd.Command, out event.CallFinishedData) error {
	_, err := s.payloads.Shrink(ctx, subject.Log{Tenant: c.Tenant, Kind: id.KindTask, Entity: c.Key}, &out)
	switch {
	case errors.Is(err, fault.New(fault.MessageTooBig)):
		full := fault.From(err, "")
		out.Status, out.Result, out.Code, out.Error = callError, nil, string(full.Code), full.Public()
	case err != nil:
		return err
	}
	report := cmd.Command{
		ID: out.CallID + ".ended", Service: cmd.Task, Verb: cmd.EndCall, Tenant: c.Tenant, Key: c.Key, Data: encode(out),
	}
	return s.Send(ctx, report)
}

const (
	// toolsFresh is how long it is remembered which tools a server has.
	toolsFresh = 10 * time.Second
	// toolsWait is how long a task's other commands wait for the list of tools.
	toolsWait = 2 * time.Second
	// maxServers bounds the remembered servers.
	maxServers = 1024
)

// tool returns the registry's entry of the tool that a command names. An unknown tool is not
// repeatable; the worker that runs the call reports the error.
func (s *Service) tool(ctx context.Context, c cmd.Command) assignment.Tool {
	var d cmd.ToolRequest
	if c.Verb != cmd.CallTool || c.Decode(&d) != nil || s.payloads.Fill(ctx, c.Tenant, &d) != nil {
		return assignment.Tool{}
	}
	return s.toolOf(ctx, c.Tenant, d)
}

// toolOf returns the registry's entry of the requested tool.
func (s *Service) toolOf(ctx context.Context, t id.Tenant, d cmd.ToolRequest) assignment.Tool {
	got := s.look(ctx, shelfKey{t, d.Kind, d.Server})
	out := assignment.Tool{ServerName: got.server.Name}
	for _, t := range got.tools {
		if t.Own == d.Tool || t.Name == d.Tool {
			out.Idempotent = t.Repeatable(d.Arguments)
			return out
		}
	}
	titled := slices.DeleteFunc(slices.Clone(got.tools), func(t tools.Tool) bool { return t.Title != d.Tool })
	out.Idempotent = len(titled) == 1 && titled[0].Repeatable(d.Arguments)
	return out
}

// look returns a server's tools, as they were a moment ago at most.
func (s *Service) look(ctx context.Context, key shelfKey) shelved {
	now := s.cfg.Now()
	s.shelf.mu.Lock()
	got, ok := s.shelf.known[key]
	s.shelf.mu.Unlock()
	if ok && now.Before(got.until) {
		return got
	}
	ctx, cancel := context.WithTimeout(ctx, toolsWait)
	defer cancel()
	server, list, err := s.tools.ToolsOf(ctx, key.tenant, key.kind, key.server)
	if err != nil {
		s.deps.Logger.Debug().Err(err).Str("server", key.server).Msg("tool list unavailable; server has no tools for now")
	}
	got = shelved{server: server, tools: list, until: now.Add(toolsFresh)}
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	if s.shelf.known == nil || len(s.shelf.known) >= maxServers {
		s.shelf.known = map[shelfKey]shelved{}
	}
	s.shelf.known[key] = got
	return got
}
