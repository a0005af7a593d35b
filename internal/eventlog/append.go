package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// ackTimeout bounds one attempt. An ack takes 0.4 ms (R1) to 30 ms (R1 that syncs every message); an ack that
	// takes seconds is lost with its leader.
	ackTimeout = 2 * time.Second
	// busyPause is the pause while another append to the log is in flight: about the time that it takes (R3 measured:
	// 0.5 ms).
	busyPause    = time.Millisecond
	busyPauseMax = 20 * time.Millisecond
	// maxEvent bounds the stored form of an event. The rest of the streams' limit is for the logs of teams, which wrap
	// the events of other logs.
	maxEvent = 256 << 10
)

// attempt appends one event: one or more tries with the same dedupe id.
type attempt struct {
	w        *Writer
	ev       event.Event
	id       string
	raw      []byte
	deadline time.Time
}

// ack is JetStream's answer to a publish.
type ack struct {
	Error     *apiError `json:"error"`
	Seq       uint64    `json:"seq"`
	Duplicate bool      `json:"duplicate"`
}

// run tries until the event is in the log, a foreign event appears, or the attempt fails permanently. While the outcome
// is unknown it reads on before it tries again: every retry expects the log to end at the Writer's position.
func (a *attempt) run(ctx context.Context) (seen, error) {
	if err := a.encode(); err != nil {
		return seen{}, err
	}
	outage, busy := retryPause, busyPause
	for {
		got, err := a.try(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return got, ended(ctx, err)
		case permanent(err):
			return got, err
		case got.own != nil || got.foreign:
			a.w.s.conn.Wrote(a.w.s.partitions.Stream(a.w.log), nil)
			return got, nil // even if reading on failed: the position has moved
		case err == nil:
			err = errUnknown
		}
		if time.Now().After(a.deadline) {
			a.w.s.conn.Wrote(a.w.s.partitions.Stream(a.w.log), err)
			return got, unavailable(fmt.Errorf("append to %s: %w", a.w.log, err))
		}
		pause, limit := &outage, retryPauseMax
		if isBusy(err) {
			pause, limit = &busy, busyPauseMax
		}
		if err := wait(ctx, rand.N(*pause)); err != nil { //nolint:gosec // spreads retries, protects nothing
			return got, err
		}
		*pause = min(2**pause, limit)
	}
}

// encode sets the stored form. It stays valid until the Writer's position moves, which ends the attempt.
func (a *attempt) encode() (err error) {
	a.ev.Sequence = a.w.at.Seq + 1
	if a.raw, err = entry.Encode(a.ev); err != nil {
		return err
	}
	if len(a.raw) > maxEvent && a.w.log.Kind != id.KindTeam {
		return fmt.Errorf("%w: %s event of %d bytes", ErrRefused, a.ev.Type, len(a.raw))
	}
	return nil
}

// try publishes once and finds out the outcome. A result without own and foreign entry and without error means: try
// again later.
func (a *attempt) try(ctx context.Context) (seen, error) {
	ok, err := a.publish(ctx)
	switch {
	case err == nil && ok.Duplicate:
		a.count("duplicate")
		return a.adopt(ctx, ok.Seq)
	case err == nil:
		e := &Entry{Event: a.ev, Raw: a.raw}
		e.Stream, e.From = ok.Seq, a.ev.Sequence
		a.w.pass(e)
		a.w.s.announce(a.w.log, e)
		return seen{own: e}, nil
	case ctx.Err() != nil || permanent(err):
		return seen{}, err
	}
	a.count(codeOf(err))
	got, lookErr := a.look(ctx, err)
	if lookErr != nil && (permanent(lookErr) || ctx.Err() != nil) {
		return got, lookErr
	}
	if got.own != nil {
		a.w.s.announce(a.w.log, got.own) // the process that appended it may have died before announcing it
		return got, nil
	}
	if got.foreign {
		return got, nil
	}
	return got, err
}

// publish sends the event and waits for the answer.
func (a *attempt) publish(ctx context.Context) (ack, error) {
	m := &nats.Msg{Subject: a.w.s.partitions.Event(a.w.log), Data: a.raw, Header: nats.Header{
		event.HeaderMsgID:           {a.id},
		nats.ExpectedLastSubjSeqHdr: {strconv.FormatUint(a.w.at.Stream, 10)},
		event.HeaderSeq:             {strconv.FormatUint(a.ev.Sequence, 10)},
		event.HeaderType:            {string(a.ev.Type)},
	}}
	answer, err := a.w.s.replies.One(ctx, m, ackTimeout)
	if err != nil {
		return ack{}, err
	}
	var out ack
	if err := json.Unmarshal(answer.Data, &out); err != nil {
		return ack{}, fmt.Errorf("answer to publish: %w", err)
	}
	if out.Error != nil {
		if permanent(out.Error) {
			return ack{}, fmt.Errorf("%w: %w", ErrRefused, out.Error)
		}
		return ack{}, out.Error
	}
	if out.Seq == 0 {
		return ack{}, errUnknown // an answer without a sequence is inconclusive
	}
	return out, nil
}

// look reads on after an unacknowledged attempt. A refusal for a wrong sequence names the real end of the log;
// otherwise any replica's answer suffices, because the next try is refused if that answer was incomplete.
func (a *attempt) look(ctx context.Context, cause error) (seen, error) {
	w := a.w
	if end, ok := realEnd(cause); ok {
		if end <= w.at.Stream {
			return w.sync(ctx, a.id) // shorter than before: expired completely, or lost
		}
		return w.readOver(ctx, end, a.id)
	}
	p, err := w.s.readPage(ctx, w.log, w.at, pageCount)
	if err != nil || len(p.entries) == 0 || p.entries[0].Sequence != w.at.Seq+1 {
		return seen{}, err
	}
	return w.take(p.entries, a.id), nil
}

// readOver reads on until it reaches the stream sequence.
func (w *Writer) readOver(ctx context.Context, stream uint64, own string) (seen, error) {
	var all seen
	for w.at.Stream < stream {
		e, err := w.s.leaderNext(ctx, w.log, w.at.Stream+1)
		if errors.Is(err, errNone) {
			return all, nil // the leader has changed its answer, or was replaced
		}
		if err != nil {
			return all, err
		}
		if e.Sequence != w.at.Seq+1 {
			var got seen
			got, err = w.sync(ctx, own)
			all.add(got)
			return all, err
		}
		all.add(w.take([]*Entry{e}, own))
	}
	return all, nil
}

// adopt handles an append that the stream recognised as a duplicate. All logs of the stream share dedupe ids, so
// adopt checks the stored message.
func (a *attempt) adopt(ctx context.Context, stream uint64) (seen, error) {
	w := a.w
	m, err := w.s.askLeader(ctx, w.s.partitions.Stream(w.log), getRequest{Seq: stream})
	switch {
	case errors.Is(err, errNone):
		got, err := w.sync(ctx, a.id) // it has expired since, or the log was deleted
		if err == nil && got.own == nil && !got.foreign {
			err = errUnknown
		}
		return got, err
	case err != nil:
		return seen{}, err
	}
	if id := headerOf(m, event.HeaderMsgID); id != a.id || m.Subject != a.w.s.partitions.Event(w.log) {
		return seen{}, fmt.Errorf("%w: dedupe id %q belongs to %s of %s", ErrRefused, a.id, id, m.Subject)
	}
	if stream <= w.at.Stream { // decide returned an event that observe has already seen
		e, err := leaderEntry(w.log, m)
		return seen{own: e}, err
	}
	got, err := w.readOver(ctx, stream, a.id)
	if got.own != nil {
		w.s.announce(w.log, got.own)
	}
	return got, err
}

func (a *attempt) count(code string) { a.w.s.met.conflicts.WithLabelValues(code).Inc() }

// codeOf names the outcome of a try for the metrics.
func codeOf(err error) string {
	if e, ok := errors.AsType[*apiError](err); ok {
		return strconv.Itoa(int(e.ErrCode))
	}
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return "no_responders"
	case errors.Is(err, nats.ErrTimeout):
		return "timeout"
	case errors.Is(err, nats.ErrDisconnected), errors.Is(err, nats.ErrReconnectBufExceeded):
		return "disconnected"
	}
	return "other"
}

// isBusy reports a refusal that passes within milliseconds.
func isBusy(err error) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && (e.ErrCode == codeWrongLastBusy || e.ErrCode == codeIDInFlight || e.ErrCode == codeWrongLast)
}

// realEnd returns the last sequence of the subject, which the stream names when it refuses an append with a wrong
// one.
func realEnd(err error) (uint64, bool) {
	e, ok := errors.AsType[*apiError](err)
	if !ok || e.ErrCode != codeWrongLast {
		return 0, false
	}
	_, text, ok := strings.Cut(e.Description, ": ")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}
