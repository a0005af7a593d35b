package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/faultlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Handle adds an endpoint to a server that is not started yet. f answers one request; several run concurrently. Its
// faults reach the caller unchanged, and any other error, or a panic, as INTERNAL with a reference. ctx ends when the
// caller has stopped waiting (after 30 s if it set no deadline) or the server stops; a drain does not end it. A
// request may arrive twice, so f must tolerate repetition.
func Handle[In, Out any](s *Server, verb id.Name, f func(context.Context, In) (Out, error)) {
	e := s.endpoint(verb)
	e.call = func(ctx context.Context, r micro.Request) (reply, error) {
		var in In
		if err := e.decode(r.Data(), &in); err != nil {
			return reply{}, err
		}
		out, err := f(ctx, in)
		if err != nil {
			return reply{}, err
		}
		b, err := json.Marshal(out)
		if err != nil {
			return reply{}, fmt.Errorf("encode the answer: %w", err)
		}
		return reply{body: b}, nil
	}
}

// endpoint adds an endpoint without a handler.
func (s *Server) endpoint(verb id.Name) *endpoint {
	e := &endpoint{s: s, verb: verb, label: s.label(verb), slots: make(chan struct{}, s.cfg.Concurrency)}
	s.endpoints = append(s.endpoints, e)
	return e
}

// label names a verb in logs and traces.
func (s *Server) label(verb id.Name) string { return s.cfg.Service.String() + "." + verb.String() }

// Handle implements micro.Handler. It never blocks: requests wait in goroutines.
func (e *endpoint) Handle(r micro.Request) {
	if !e.s.enter() {
		m := nats.NewMsg(r.Reply())
		m.Header.Set(headerAgain, "1")
		setFault(m, fault.Newf(fault.BusUnavailable, "The %s service is stopping. Try again in a few seconds.", e.s.cfg.Service))
		e.s.publish(m)
		return
	}
	if e.waiting.Add(1) > int64(cap(e.slots)*(1+waitingPerSlot)) {
		e.waiting.Add(-1)
		e.answer(e.s.kill, r.Reply(), nil, fault.Newf(fault.Overloaded, "The %s service is overloaded. Try again later.", e.s.cfg.Service))
		e.s.handled.Done()
		return
	}
	arrived := time.Now()
	e.s.requests.Go(func() {
		defer e.s.handled.Done()
		defer e.waiting.Add(-1)
		e.serve(r, arrived)
	})
}

// serve waits for a slot and answers the request.
func (e *endpoint) serve(r micro.Request, arrived time.Time) {
	ctx, cancel := context.WithDeadline(e.s.kill, arrived.Add(maxWait(r)))
	defer cancel()
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		e.answer(ctx, r.Reply(), nil, context.Cause(ctx))
		return
	}
	began := time.Now()
	out, err := e.run(ctx, r)
	took := time.Since(began)
	e.nanos.Add(int64(took))
	e.s.metrics.took.WithLabelValues(e.s.cfg.Service.String(), e.verb.String()).Observe(took.Seconds())
	if err == nil && out.follow != nil {
		e.count(outcomeDone)
		out.follow()
		return
	}
	e.answer(ctx, r.Reply(), out.body, err)
}

// maxWait returns the time for which the caller waits.
func maxWait(r micro.Request) time.Duration {
	ms, err := strconv.ParseInt(r.Headers().Get(headerTimeout), 10, 64)
	if err != nil || ms <= 0 {
		return handlerTimeout
	}
	return time.Duration(min(ms, handlerLimit.Milliseconds())) * time.Millisecond
}

// run calls the handler with the caller's trace and turns a panic into an error. It first waits until this process'
// copy of the directory is as new as the caller's.
func (e *endpoint) run(ctx context.Context, r micro.Request) (out reply, err error) {
	ctx = telemetry.Extract(ctx, r.Headers().Get(headerTrace))
	ctx, span := telemetry.Start(ctx, "answer "+e.label, trace.SpanKindServer, telemetry.SystemNATS,
		telemetry.KeyDestination.String(e.label), telemetry.KeyMessageSize.Int(len(r.Data())))
	defer func() {
		if p := recover(); p != nil {
			e.s.log.Error().Str("verb", e.label).Interface("panic", p).Bytes("stack", debug.Stack()).Msg("panic recovered in request handler")
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		telemetry.End(span, err)
	}()
	ctx, seen := directory.Extract(ctx, r.Headers())
	if d := e.s.cfg.Directory; d != nil && seen > 0 {
		if err := d.Reach(ctx, seen); err != nil {
			return reply{}, fault.New(fault.BusUnavailable).Wrap(err)
		}
	}
	return e.call(ctx, r)
}

// decode reads the body of a request.
func (e *endpoint) decode(body []byte, in any) error {
	if err := json.Unmarshal(body, in); err != nil {
		return fault.Newf(fault.BadJSON, "The request is invalid for %s.", e.label).Wrap(err)
	}
	return nil
}

// answer sends the outcome. It replaces an answer that is too large for a message with a fault.
func (e *endpoint) answer(ctx context.Context, to string, out []byte, err error) {
	m := nats.NewMsg(to)
	m.Data = out
	limit := e.s.conn.NATS().MaxPayload()
	if err == nil && int64(len(out)) > limit {
		err = fault.Newf(fault.MessageTooBig, "The response of %s has %d bytes, more than the message bus accepts (%d).", e.label, len(out), limit)
	}
	outcome := outcomeDone
	if err != nil {
		f := e.public(ctx, err)
		outcome = string(f.Code)
		setFault(m, f)
		e.errors.Add(1)
	}
	e.count(outcome)
	e.s.publish(m)
}

func (e *endpoint) count(outcome string) {
	e.requests.Add(1)
	e.s.metrics.handled.WithLabelValues(e.s.cfg.Service.String(), e.verb.String(), outcome).Inc()
}

// public returns the fault for the caller. The error of a handler whose context had ended counts as the consequence
// of that.
func (e *endpoint) public(ctx context.Context, err error) *fault.Fault {
	_, known := errors.AsType[*fault.Fault](err)
	switch {
	case known:
	case e.s.kill.Err() != nil:
		return fault.Newf(fault.BusUnavailable, "The %s service stopped before it responded. Try again in a few seconds.", e.s.cfg.Service)
	case ctx.Err() != nil:
		e.s.log.Warn().Err(err).Str("verb", e.label).Msg("response too late for caller")
		return late(e.s.cfg.Service)
	}
	return e.s.internal(e.label, err)
}

// internal returns the fault for an error, and logs what the caller may not know.
func (s *Server) internal(label string, err error) *fault.Fault {
	log := s.log.With().Str("verb", label).Logger()
	return faultlog.Public(&log, err, "request failed: internal error")
}

// publish sends an answer. A caller that misses it asks again.
func (s *Server) publish(m *nats.Msg) {
	if m.Subject == "" {
		return // the request has no reply subject
	}
	if err := s.conn.NATS().PublishMsg(m); err != nil {
		s.log.Debug().Err(err).Str("subject", m.Subject).Msg("failed to send response")
	}
}
