package service

import (
	"context"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
)

// route leads a call to its tool.
type route interface {
	// Label is the server's label in metrics: one of a few values, and never text of a client.
	Label() string
	// Limit returns the time limit of a call that asks for the given time; 0 = no time given.
	Limit(asked time.Duration) time.Duration
	// Repeatable reports whether the call may be repeated after an unknown outcome.
	Repeatable(call tools.Call) bool
	// Tool returns the tool; ok is false if the server does not have it.
	Tool() (tool tools.Tool, ok bool)
	// Run runs the call. Errors are faults.
	Run(ctx context.Context, call tools.Call, told func(tools.Notification)) (tools.Result, error)
}

// route returns the route of a call.
func (s *Service) route(call tools.Call) (route, error) {
	switch {
	case call.Kind == "" && call.Server == "":
		if srv := s.serverOf(call.Tenant, call.Tool); srv != nil {
			return srv.Route(call.Tool), nil
		}
		if s.swarm != nil {
			if rt, ok := s.swarm.Offered(call.Tenant, call.Tool); ok {
				return rt, nil
			}
		}
	case call.Kind == tools.KindMCP:
		srv := s.serverNamed(call.Tenant, call.Server)
		if srv == nil {
			return nil, fault.New(fault.ServerNotFound)
		}
		return srv.Route(srv.Called(call.Tool)), nil
	case call.Kind == tools.KindService && s.swarm != nil:
		rt, err := s.swarm.Named(call.Tenant, call.Server, call.Tool)
		if err != nil {
			return nil, err
		}
		return rt, nil
	case call.Kind == tools.KindService:
		return nil, fault.New(fault.ServiceNotFound)
	default:
		return nil, tools.BadKind()
	}
	return nil, fault.Newf(fault.ToolNotFound, "The tool %s does not exist.", bound.Shorten(call.Tool, offer.MaxName))
}

// execute brings a fresh run to its outcome.
func (s *Service) execute(r *calls.Run, call tools.Call) {
	began := time.Now()
	label := noServer
	var res tools.Result
	rt, err := s.route(call)
	if err == nil {
		label = rt.Label()
		tool, known := rt.Tool()
		if known { // another one is not found when it is run
			err = s.allowed(tool, call)
		}
		if err == nil {
			res, err = perform(r.Context(), rt, call, func(n tools.Notification) { s.metrics.missed.Add(float64(r.Tell(n))) })
			res.Untrusted = tool.Policy.Untrusted
		}
	}
	var f *fault.Fault
	if err != nil {
		f = fault.From(err, "")
	}
	s.metrics.called(label, f, res, time.Since(began))
	s.calls.End(r, res, f, keeps(rt, call, f))
}

// keeps reports whether a repeat of the call gets this outcome. A repeat does not if nothing ran, or if the outcome is
// unknown and the tool is repeatable.
func keeps(rt route, call tools.Call, f *fault.Fault) bool {
	if f == nil {
		return true
	}
	switch f.Code {
	case fault.ToolFailed, fault.BadOutput:
		return true
	case fault.ToolLost, fault.ServiceLost, fault.ToolTimeout, fault.ToolCancelled:
		return rt == nil || !rt.Repeatable(call)
	}
	return false
}

// perform runs a call within its time limit.
func perform(ctx context.Context, rt route, call tools.Call, told func(tools.Notification)) (_ tools.Result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, rt.Limit(call.Timeout), calls.ErrTimeout)
	defer cancel()
	ctx, span := telemetry.Start(ctx, "tools/call "+call.Tool, trace.SpanKindClient,
		semconv.GenAIToolName(call.Tool), semconv.GenAIToolCallID(call.ID))
	defer func() { telemetry.End(span, err) }()
	return rt.Run(ctx, call, told)
}
