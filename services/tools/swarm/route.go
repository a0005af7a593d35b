package swarm

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
)

// Route leads calls to a tool of a service.
type Route struct {
	w    *Registry
	key  serviceKey
	tool *offer.Tool
}

// Offered returns the route to a tool of the tenant's services by its offered name.
func (w *Registry) Offered(tenant id.Tenant, name string) (Route, bool) {
	v, _ := w.look(tenant)
	k := v.offered[offeredKey{tenant, name}]
	if k == nil {
		return Route{}, false
	}
	return Route{w, serviceKey{tenant, k.Server}, k}, true
}

// Named returns the route to a tool of a service. Errors are *fault.Fault.
func (w *Registry) Named(tenant id.Tenant, server, tool string) (Route, error) {
	v, _ := w.look(tenant)
	svc := v.find(tenant, server)
	if svc == nil {
		return Route{}, fault.New(fault.ServiceNotFound)
	}
	k := svc.tool(tool)
	if k == nil {
		return Route{}, fault.Newf(fault.ToolNotFound, "The tool %s does not exist.", bound.Shorten(tool, offer.MaxName))
	}
	return Route{w, svc.key, k}, nil
}

// Label returns the label of all services in metrics.
func (sr Route) Label() string { return serviceLabel }

// Limit returns the time limit of a call that asks for the given time; 0 = no time given.
func (sr Route) Limit(asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, longestServiceCall)
	}
	return bound.Timeout
}

// Repeatable reports whether the call may be repeated after an unknown outcome.
func (sr Route) Repeatable(call tools.Call) bool { return sr.tool.Repeatable(call.Arguments) }

// Tool returns the tool.
func (sr Route) Tool() (tools.Tool, bool) { return sr.tool.Tool, true }

// Run runs the call on a replica. If the call is lost there and may be repeated, Run repeats it on another replica, or on
// one that reconnects soon.
func (sr Route) Run(ctx context.Context, call tools.Call, told func(tools.Notification)) (tools.Result, error) {
	call.Tool = sr.tool.Own
	tried := make(map[string]bool)
	end := sr.once(ctx, call, told, tried)
	if end.fate == fateLost && sr.Repeatable(call) && sr.w.await(ctx, sr.key, call.Tool, tried) {
		if again := sr.once(ctx, call, told, tried); again.fate != fateRefused {
			end = again
		}
	}
	if end.err != nil {
		return tools.Result{}, end.err
	}
	return serviceResult(end.data, call.Raw)
}

// once offers the call to replicas in sequence until one has it. It adds the tried ones to tried.
func (sr Route) once(ctx context.Context, call tools.Call, told func(tools.Notification), tried map[string]bool) ending {
	for {
		if ctx.Err() != nil {
			return ending{fate: fateRefused, err: calls.Interrupted(context.Cause(ctx), false)}
		}
		r, err := sr.w.take(sr.key, call.Tool, tried)
		if err != nil {
			return ending{fate: fateRefused, err: err}
		}
		tried[r.id] = true
		end := sr.give(ctx, r, call, told)
		if end.fate != fateRefused {
			return end
		}
		sr.w.log.Info().Err(end.err).Str("service", bound.Shorten(sr.key.id, bound.Title)).Msg("tool call will be retried on another replica")
	}
}

// give runs the call on a reserved replica, and releases it.
func (sr Route) give(ctx context.Context, r *replica, call tools.Call, told func(tools.Notification)) ending {
	defer sr.w.release(sr.key, r)
	k := r.tools[call.Tool]
	if err := sr.check(ctx, false, func() error { _, err := k.Arguments.Arguments(call.Arguments); return err }); err != nil {
		return ending{err: err}
	}
	h := &handover{w: sr.w, r: r, key: sr.key, call: call, told: told}
	end := h.run(ctx)
	if end.err == nil && k.Result != nil {
		end.err = sr.check(ctx, true, func() error { return k.Result.CheckResult(end.data) })
	}
	return end
}

// check runs a check of arguments or results in a turn of the tenant. ran reports whether the tool has run.
func (sr Route) check(ctx context.Context, ran bool, check func() error) error {
	done, err := sr.w.turns.Take(ctx, sr.key.tenant)
	if err != nil {
		return calls.Interrupted(err, ran)
	}
	defer done()
	return check()
}

// serviceResult turns a service's answer into a result. Models get the text of a string and the JSON of any other value, cut
// at the output limit.
func serviceResult(data json.RawMessage, raw bool) (tools.Result, error) {
	if raw {
		if len(data) > bound.MaxOutput {
			return tools.Result{}, bound.TooLong(len(data), bound.MaxOutput)
		}
		return tools.Result{Data: data, Bytes: len(data)}, nil
	}
	text := string(data)
	if err := json.Unmarshal(data, &text); err != nil {
		text = string(data)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	out := tools.Result{Text: text, Bytes: len(text)}
	if len(text) > bound.Output {
		out.Text, out.Truncated = bound.Cut(text, bound.Output), true
	}
	return out, nil
}
