package tools

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// serviceLabel stands for all services in metrics: their ids are strangers' words.
	serviceLabel = "services"
	// longestServiceCall bounds a call of a service: services may be models or
	// people, and the outcome of a call is remembered for as long.
	longestServiceCall = remember
	// returnWait is how long a call that was lost waits for a replica to be repeated
	// on: a service that is started again is back before, and its peers keep it in
	// mind for not much longer.
	returnWait = connectWait
)

// swarmRoute leads to a tool of a service.
type swarmRoute struct {
	w    *swarm
	key  serviceKey
	tool *known
}

// offered returns the way to a tool of the tenant's services by its offered name.
func (w *swarm) offered(tenant id.Tenant, name string) (route, bool) {
	v, _ := w.look()
	k := v.offered[offeredKey{tenant, name}]
	if k == nil {
		return nil, false
	}
	return swarmRoute{w, serviceKey{tenant, k.Server}, k}, true
}

// named returns the way to a tool of a service.
func (w *swarm) named(tenant id.Tenant, server, tool string) (route, error) {
	v, _ := w.look()
	svc := v.find(tenant, server)
	if svc == nil {
		return nil, fault.New(fault.ServiceNotFound)
	}
	k := svc.tool(tool)
	if k == nil {
		return nil, fault.Newf(fault.ToolNotFound, "There is no tool %s.", shorten(tool, maxName))
	}
	return swarmRoute{w, svc.key, k}, nil
}

func (sr swarmRoute) label() string { return serviceLabel }

func (sr swarmRoute) limit(asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, longestServiceCall)
	}
	return defaultTimeout
}

func (sr swarmRoute) repeatable(call Call) bool { return sr.tool.Repeatable(call.Arguments) }

// run gives the call to a replica. If it is lost there and may be repeated, it is
// given to another one, or to one that comes back soon.
func (sr swarmRoute) run(ctx context.Context, call Call, told func(Notification)) (Result, error) {
	call.Tool = sr.tool.Own
	tried := make(map[string]bool)
	end := sr.once(ctx, call, told, tried)
	if end.fate == fateLost && sr.repeatable(call) && sr.w.await(ctx, sr.key, call.Tool, tried) {
		if again := sr.once(ctx, call, told, tried); again.fate != fateRefused {
			end = again
		}
	}
	if end.err != nil {
		return Result{}, end.err
	}
	return serviceResult(end.data, call.Raw)
}

// once gives the call to one replica after the other until one has it. Those that
// were tried are added to tried.
func (sr swarmRoute) once(ctx context.Context, call Call, told func(Notification), tried map[string]bool) ending {
	for {
		if ctx.Err() != nil {
			return ending{fate: fateRefused, err: interrupted(context.Cause(ctx), false)}
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
		sr.w.log.Info().Err(end.err).Str("service", shorten(sr.key.id, maxTitle)).Msg("a replica did not take a call")
	}
}

// give runs the call on a replica that was taken for it, and releases it.
func (sr swarmRoute) give(ctx context.Context, r *replica, call Call, told func(Notification)) ending {
	defer sr.w.release(sr.key, r)
	k := r.tools[call.Tool]
	if _, err := checkArguments(k.schema, call.Arguments); err != nil {
		return ending{err: err}
	}
	h := &handover{w: sr.w, r: r, key: sr.key, call: call, told: told}
	end := h.run(ctx)
	if end.err == nil && k.out != nil {
		end.err = checkOutput(k.out, end.data)
	}
	return end
}

// serviceResult turns what a service answered into a result. Models get the text of
// a string and of anything else its JSON, cut at the output cap.
func serviceResult(data json.RawMessage, raw bool) (Result, error) {
	if raw {
		if len(data) > maxOutputCap {
			return Result{}, tooLong(len(data), maxOutputCap)
		}
		return Result{Data: data, Bytes: len(data)}, nil
	}
	text := string(data)
	if err := json.Unmarshal(data, &text); err != nil {
		text = string(data)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	out := Result{Text: text, Bytes: len(text)}
	if len(text) > defaultOutputCap {
		out.Text, out.Truncated = cut(text, defaultOutputCap), true
	}
	return out, nil
}
