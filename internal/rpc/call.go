package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// callTimeout bounds Call if ctx does not end earlier: longer than the election after a killed stream leader (4.2
	// to 7.4 s measured).
	callTimeout = 10 * time.Second
	// maxAsks bounds the leaving replicas that a call asks before the service counts as gone. Each of them has left
	// the bus when it answers so.
	maxAsks = 8
)

// handoverPauses are the waits before a call asks again when the bus names no replica. A server matches a request to
// the subscriptions of one moment and delivers it later: a request that it matched before a new replica subscribed, and
// delivers after the old one left, finds neither. Between the servers of a cluster that moment is longer.
var handoverPauses = []time.Duration{10 * time.Millisecond, 40 * time.Millisecond, 150 * time.Millisecond}

// Call asks one replica of the service as CallWithin does, for 10 s at most.
func Call(ctx context.Context, conn *bus.Conn, service, verb id.Name, in, out any) error {
	return CallWithin(ctx, conn, callTimeout, service, verb, in, out)
}

// CallWithin asks one replica of the service and decodes its answer into out, which may be nil. It returns the
// service's fault, or one of its own: BUS_UNAVAILABLE, which allows a retry, if no replica runs, no answer comes
// within ctx and maxWait, or the connection is down; MESSAGE_TOO_BIG if the request does not fit a message of the
// bus. If ctx is cancelled its cause is wrapped. Without an answer the request may or may not have been handled.
// CallWithin is safe for concurrent use.
func CallWithin(ctx context.Context, conn *bus.Conn, maxWait time.Duration, service, verb id.Name, in, out any) (err error) {
	return call(ctx, conn, maxWait, false, service, verb, in, out)
}

// Repeat is Call for requests that look something up, and for those that the service carries out once however often they
// come. A connection that breaks takes requests and answers along: Repeat sends the request again after 3 s without an
// answer, and waits for a lost connection, for 3 s at most.
func Repeat(ctx context.Context, conn *bus.Conn, service, verb id.Name, in, out any) error {
	return call(ctx, conn, callTimeout, true, service, verb, in, out)
}

func call(ctx context.Context, conn *bus.Conn, maxWait time.Duration, repeat bool, service, verb id.Name, in, out any) (err error) {
	label := service.String() + "." + verb.String()
	ctx, span := telemetry.Start(ctx, "ask "+label, trace.SpanKindClient, telemetry.SystemNATS, telemetry.KeyDestination.String(label))
	defer func() { telemetry.End(span, err) }()
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("ask %s: encode the request: %w", label, err)
	}
	waiting, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	send := func(ctx context.Context) (*nats.Msg, error) {
		return conn.NATS().RequestMsgWithContext(ctx, request(waiting, service, verb, body))
	}
	answer, err := ask(waiting, func() (*nats.Msg, error) {
		if !repeat {
			return send(waiting)
		}
		return bus.Insist(waiting, conn, missed, send)
	}, wait)
	if err != nil {
		return unanswered(ctx, conn, service, len(body), err)
	}
	if f := faultOf(answer); f != nil {
		return f
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		return fmt.Errorf("ask %s: decode the answer: %w", label, err)
	}
	return nil
}

// missed reports whether the request or its answer may have been lost with a connection.
func missed(err error) bool {
	for _, lost := range []error{
		nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrTimeout, context.DeadlineExceeded,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// ask sends the request until a replica answers that is not leaving. If the bus names no replica, ask pauses and sends
// it again, as often as handoverPauses allows.
func ask(ctx context.Context, send func() (*nats.Msg, error), pause func(context.Context, time.Duration) error) (answer *nats.Msg, err error) {
	pauses := handoverPauses
	for range maxAsks {
		answer, err = send()
		switch {
		case errors.Is(err, nats.ErrNoResponders) && len(pauses) > 0:
			if pause(ctx, pauses[0]) != nil {
				return nil, err
			}
			pauses = pauses[1:]
		case err != nil || answer.Header.Get(headerAgain) == "":
			return answer, err
		}
	}
	return answer, err
}

// wait returns after d, or with the cause of ctx's end.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func request(ctx context.Context, service, verb id.Name, body []byte) *nats.Msg {
	m := nats.NewMsg(subject.RPC(service, verb))
	m.Data = body
	if parent := telemetry.Inject(ctx); parent != "" {
		m.Header.Set(headerTrace, parent)
	}
	directory.Inject(ctx, m.Header)
	if end, ok := ctx.Deadline(); ok {
		m.Header.Set(headerTimeout, strconv.FormatInt(max(time.Until(end).Milliseconds(), 1), 10))
	}
	return m
}

// unanswered returns the reason for a missing answer.
func unanswered(ctx context.Context, conn *bus.Conn, service id.Name, size int, err error) error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return fault.Newf(fault.MessageTooBig, "The request has %d bytes, more than the message bus accepts (%d).", size, conn.NATS().MaxPayload()).Wrap(err)
	case errors.Is(err, nats.ErrNoResponders):
		return fault.Newf(fault.BusUnavailable, "No %s service is running, and nothing was done. Start one with the role %s, or try again in a few seconds.", service, service).Wrap(err)
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("ask the %s service: %w", service, context.Cause(ctx))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return late(service).Wrap(err)
	}
	return fault.New(fault.BusUnavailable).Wrap(err)
}

func late(service id.Name) *fault.Fault {
	return fault.Newf(fault.BusUnavailable, "The %s service did not respond in time. Try again in a few seconds.", service)
}
