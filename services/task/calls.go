package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/tools"
)

// callService is the queue of tool calls within tasks, which any replica may take.
var (
	callService = id.MustName("task-call")
	runCall     = id.MustName("run") // data: event.CallStartedData
)

// Outcomes of calls.
const (
	callSuccess = "success"
	callError   = "error"
	callUnknown = "unknown"
)

// callDeliveries is how often a call is handed to a worker: the first time, and often
// enough afterwards that somebody lives to say what became of it.
const callDeliveries = 5

// workers returns the consumer of tool calls.
func (s *Service) workers() *command.Workers {
	return command.NewWorkers(s.deps.Conn, command.WorkersConfig{
		Service: callService, Instance: s.deps.Instance, Concurrency: s.cfg.Calls, AckWait: s.cfg.AckWait,
		MaxDeliver: callDeliveries, Logger: s.deps.Logger, Registry: s.cfg.Registry, OnDead: s.callDead,
	}, s.run)
}

// run runs one tool call and reports its outcome. When it comes again, somebody may
// have begun it: only a call that bears repetition is run again.
func (s *Service) run(ctx context.Context, c cmd.Command, d command.Delivery) error {
	var in event.CallStartedData
	if err := c.Decode(&in); err != nil {
		return command.Permanent(err)
	}
	out := event.CallFinishedData{CallID: in.CallID, Status: callUnknown}
	if d.Attempt > 1 && !in.Idempotent {
		lost := fault.New(fault.ServiceLost)
		out.Code, out.Error = string(lost.Code), lost.Public()
		return s.ended(ctx, c, out)
	}
	began := s.cfg.Now()
	result, err := s.tools.CallWith(ctx, tools.Call{
		ID: in.CallID, Scope: c.Key.String(), Tenant: c.Tenant, Kind: in.Kind, Server: in.Server, Tool: in.Tool, Arguments: in.Arguments,
		Timeout: time.Duration(in.TimeoutMS) * time.Millisecond, Raw: true,
		TaskID: in.TaskID, AgentID: in.AgentID, ClientID: in.ClientID,
	}, s.notes(ctx, c, in))
	if ctx.Err() != nil {
		return context.Cause(ctx) // whoever has it next decides
	}
	out.Status, out.Result, out.Code, out.Error = outcome(result, err)
	out.DurationMS = s.cfg.Now().Sub(began).Milliseconds()
	return s.ended(ctx, c, out)
}

// outcome says what became of a call.
func outcome(r tools.Result, err error) (status string, result json.RawMessage, code, text string) {
	if err != nil {
		f := fault.From(err, "")
		status = callError
		if f.Code == fault.ToolLost || f.Code == fault.ServiceLost {
			status = callUnknown
		}
		return status, nil, string(f.Code), f.Public()
	}
	result = r.Data
	if len(result) == 0 {
		result = encode(r.Text)
	}
	if r.IsError {
		return callError, result, string(fault.ToolFailed), fault.New(fault.ToolFailed).Public()
	}
	return callSuccess, result, "", ""
}

// notes returns what sends a service's notifications on to the task. Those that the
// bus does not take are lost: the call is not harmed.
func (s *Service) notes(ctx context.Context, c cmd.Command, in event.CallStartedData) func(tools.Notification) {
	n := 0
	return func(note tools.Notification) {
		n++
		err := s.Send(ctx, cmd.Command{
			ID: fmt.Sprintf("%s.note.%d", in.CallID, n), Service: cmd.Task, Verb: cmd.CallNotified, Tenant: c.Tenant, Key: c.Key,
			Data: encode(event.CallNotifiedData{
				CallID: in.CallID, Server: in.Server, ServerName: in.ServerName,
				NotificationType: note.Type, Message: note.Message, Data: note.Data, At: note.At,
			}),
		})
		if err != nil {
			s.deps.Logger.Debug().Err(err).Str("call", in.CallID).Msg("a notification is lost")
		}
	}
}

// ended reports the outcome of a call to its task. One that is too large to be kept
// is an error.
func (s *Service) ended(ctx context.Context, c cmd.Command, out event.CallFinishedData) error {
	report := cmd.Command{
		ID: out.CallID + ".ended", Service: cmd.Task, Verb: cmd.CallEnded, Tenant: c.Tenant, Key: c.Key, Data: encode(out),
	}
	err := s.Send(ctx, report)
	if !errors.Is(err, fault.New(fault.MessageTooBig)) {
		return err
	}
	big := fault.Newf(fault.BadOutput, "What the tool answered is too large to be passed on. Ask for less at once.")
	out.Status, out.Result, out.Code, out.Error = callError, nil, string(big.Code), big.Public()
	report.Data = encode(out)
	return s.Send(ctx, report)
}

// callDead reports a call that no worker lived to bring to an end.
func (s *Service) callDead(ctx context.Context, c cmd.Command, _ string) {
	var in event.CallStartedData
	err := c.Decode(&in)
	if err == nil {
		lost := fault.New(fault.ServiceLost)
		err = s.ended(ctx, c, event.CallFinishedData{
			CallID: in.CallID, Status: callUnknown, Code: string(lost.Code), Error: lost.Public(),
		})
	}
	if err != nil {
		s.deps.Logger.Error().Err(err).Str("call", in.CallID).Msg("a task does not learn that its tool call was given up")
	}
}

const (
	// toolsFresh is how long it is remembered which tools a server has.
	toolsFresh = 10 * time.Second
	// toolsWait is how long a task's other commands wait for the list of tools.
	toolsWait = 2 * time.Second
	// maxServers bounds what is remembered.
	maxServers = 1024
)

// shelf remembers for a moment which tools servers have. It is safe for concurrent use.
type shelf struct {
	mu    sync.Mutex
	known map[shelfKey]shelved
}

type shelfKey struct {
	tenant       id.Tenant
	kind, server string
}

type shelved struct {
	server tools.Server
	tools  []tools.Tool
	until  time.Time
}

// tool returns what is known of the tool that a command asks for. If nothing is, the
// call is not repeatable, and whoever runs it finds out what is wrong.
func (s *Service) tool(ctx context.Context, c cmd.Command) assignment.Tool {
	var d cmd.ToolRequest
	if c.Verb != cmd.CallTool || c.Decode(&d) != nil {
		return assignment.Tool{}
	}
	got := s.look(ctx, shelfKey{c.Tenant, d.Kind, d.Server})
	out := assignment.Tool{ServerName: got.server.Name}
	for _, t := range got.tools {
		if t.Own == d.Tool || t.Name == d.Tool {
			out.Idempotent = t.Repeatable(d.Arguments)
		}
	}
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
		s.deps.Logger.Debug().Err(err).Str("server", key.server).Msg("the tools of a server are not known")
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
