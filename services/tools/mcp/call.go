package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
)

// Route leads calls to one tool of a server.
type Route struct {
	server *Server
	tool   string // the offered name
}

// Route returns the route to the tool of that offered name.
func (s *Server) Route(offered string) Route { return Route{s, offered} }

// Label returns the server's name, for metrics.
func (r Route) Label() string { return r.server.cfg.Name }

// Limit returns the time limit of a call that asks for the given time; 0 = no time given.
func (r Route) Limit(asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, r.server.cfg.Timeout)
	}
	return r.server.cfg.Timeout
}

// Repeatable reports whether the call may be repeated after an unknown outcome.
func (r Route) Repeatable(call tools.Call) bool {
	k := r.server.find(r.tool)
	return k != nil && k.Repeatable(call.Arguments)
}

// Tool returns the tool, as last known; ok is false for one that the server does not have.
func (r Route) Tool() (tool tools.Tool, ok bool) {
	k := r.server.find(r.tool)
	if k == nil {
		return tools.Tool{}, false
	}
	return k.Tool, true
}

// Run runs the call. Errors are *fault.Fault. MCP servers send no notifications.
func (r Route) Run(ctx context.Context, call tools.Call, _ func(tools.Notification)) (tools.Result, error) {
	call.Tool = r.tool
	if r.server.programs == nil {
		return r.server.try(ctx, call)
	}
	own, release, err := r.server.programs.take(call.Tenant) //nolint:contextcheck // the program outlives the call
	if err != nil {
		return tools.Result{}, err
	}
	defer release()
	return own.try(ctx, call)
}

// maxAttempts bounds the attempts at one call: two that reach the tool, and two that meet an ended connection.
const maxAttempts = 4

// try runs a call, and repeats it if the attempt did not reach the server, or once more if it may have reached a repeatable
// tool.
func (s *Server) try(ctx context.Context, call tools.Call) (tools.Result, error) {
	var res tools.Result
	var again bool
	var err error
	for n, lost := 0, 0; n < maxAttempts && lost < 2; n++ {
		res, again, err = s.attempt(ctx, call)
		if !again || ctx.Err() != nil {
			break
		}
		if errors.Is(err, fault.New(fault.ToolLost)) {
			lost++
		}
		s.log.Info().Err(err).Str("tool", call.Tool).Msg("tool call will be retried")
	}
	return res, err
}

// attempt runs a call over the current connection. again reports whether a repeat carries no risk.
func (s *Server) attempt(ctx context.Context, call tools.Call) (_ tools.Result, again bool, _ error) {
	if s.find(call.Tool) == nil && s.connected() {
		return tools.Result{}, false, fault.Newf(fault.ToolNotFound, "The tool %s does not exist.", bound.Shorten(call.Tool, offer.MaxName))
	}
	if s.refused.Load() {
		return tools.Result{}, false, fault.Newf(fault.ToolsDown, "The tool server %s is not running: its machine cannot confine it as tools.sandbox requires. Nothing was run.", s.cfg.Name)
	}
	sess, tool, err := s.acquire(ctx, call.Tool)
	if err != nil && !errors.Is(err, calls.ErrTimeout) {
		return tools.Result{}, false, calls.Interrupted(err, false)
	}
	if sess == nil {
		return tools.Result{}, false, fault.Newf(fault.ToolsDown, "The tool server %s is not connected. Nothing was run.", s.cfg.Name)
	}
	defer sess.release()
	if tool == nil {
		return tools.Result{}, false, fault.Newf(fault.ToolNotFound, "The tool %s no longer exists.", call.Tool)
	}
	if err := call.Changed(tool.Tool); err != nil { // while the call waited for a connection
		return tools.Result{}, false, err
	}
	args, err := s.arguments(ctx, tool, call)
	if err != nil {
		return tools.Result{}, false, err
	}
	a := newAttempt()
	got, err := sess.call(ctx, a, &mcp.CallToolParams{Name: tool.Own, Arguments: args, Meta: s.meta(ctx, call.Tenant)})
	if err == nil {
		res, err := s.answered(ctx, got, tool, call)
		if err == nil && s.cfg.TellTenant {
			res.File, err = fileOf(got)
		}
		return res, false, err
	}
	return s.lost(ctx, sess, tool, call, a, err)
}

// lost turns the error of an attempt into a fault.
func (s *Server) lost(ctx context.Context, sess *session, tool *offer.Tool, call tools.Call, a *attempt, err error) (tools.Result, bool, error) {
	if ctx.Err() != nil {
		return tools.Result{}, false, calls.Interrupted(context.Cause(ctx), a.ran())
	}
	je, closing := answerOf(err), errors.Is(err, mcp.ErrConnectionClosed)
	err = errors.New(s.scrub.Text(err.Error(), bound.Message)) // it may hold an address with the key of a session
	if !a.ran() || je != nil && je.Code == mcp.CodeUnsupportedProtocolVersion {
		sess.retire() // Retire the session after a second failure: another server has taken the address.
		return tools.Result{}, true, fault.Newf(fault.ToolsDown, "The tool server %s cannot be reached. Nothing was run.", s.cfg.Name).Wrap(err)
	}
	if je != nil {
		s.changed() // The tool or the session may no longer exist: fetch the tools.
		if je.Code == jsonrpc.CodeInvalidParams {
			return tools.Result{}, false, fault.Newf(fault.ToolBadInput, "The tool rejected the arguments: %s", bound.Shorten(je.Message, bound.Message)).Wrap(err)
		}
		return tools.Result{}, false, fault.Newf(fault.ToolFailed, "The tool failed: %s", bound.Shorten(je.Message, bound.Message)).Wrap(err)
	}
	if closing {
		sess.retire()
	}
	return tools.Result{}, tool.Repeatable(call.Arguments), fault.New(fault.ToolLost).Wrap(err)
}

// meta returns a request's metadata: the trace for all servers, the tenant for servers with TellTenant.
func (s *Server) meta(ctx context.Context, tenant id.Tenant) mcp.Meta {
	m := mcp.Meta{}
	if parent := telemetry.Inject(ctx); parent != "" {
		m["traceparent"] = parent
	}
	if s.cfg.TellTenant {
		m[tools.MetaTenant] = tenant.String()
	}
	return m
}
