package session

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// wish is where a client would like to begin.
type wish struct {
	after *uint64
	event *eventlog.Cursor // wins over all others
	live  bool
	acked uint64 // the acknowledged position, without any other; 0 = the beginning
}

// ends are the oldest and the newest event that are left of a log which has events.
type ends struct {
	first uint64
	last  eventlog.Cursor
}

// begin returns the position after which the client is shown the log, and, if what
// it would have to see next has expired, the first event that is left (otherwise 0).
// A position beyond the newest event is CURSOR_INVALID.
func (w wish) begin(log ends) (after eventlog.Cursor, first uint64, err error) {
	field := "last_seq"
	switch {
	case w.event != nil:
		after, field = *w.event, "last_event_id"
	case w.after != nil:
		after.Seq = *w.after
	case w.live:
		return log.last, 0, nil
	default:
		after.Seq = min(w.acked, log.last.Seq) // the log may have been lost since
	}
	switch {
	case after.Seq > log.last.Seq:
		return after, 0, beyond(field, after.Seq, log.last.Seq)
	case after.Seq == log.last.Seq:
		return log.last, 0, nil
	case after.Seq+1 < log.first:
		return eventlog.Cursor{Seq: log.first - 1}, log.first, nil
	}
	return after, 0, nil
}

func beyond(field string, got, last uint64) *fault.Fault {
	f := fault.Newf(fault.CursorInvalid, "%s is %d, beyond the newest event of this session (%d). Use the seq of the last event you received.", field, got, last)
	return f.At(field).Unlike("at most "+strconv.FormatUint(last, 10), strconv.AppendUint(nil, got, 10))
}

// attach answers where a client that comes to a session stands. See cmd.AttachReply.
func (d *responder) attach(ctx context.Context, in cmd.AttachRequest) (cmd.AttachReply, error) {
	log := sessionLog(in.Tenant, in.Session)
	first, last, err := d.open(ctx, log)
	if err != nil {
		return cmd.AttachReply{}, err
	}
	if err := d.sees(log, first.Event, in.Principal, in.All); err != nil {
		return cmd.AttachReply{}, err
	}
	w, err := d.wish(ctx, log, in)
	if err != nil {
		return cmd.AttachReply{}, err
	}
	after, missing, err := w.begin(ends{first: first.Sequence, last: last.Cursor()})
	if err != nil {
		return cmd.AttachReply{}, err
	}
	language, err := languageOf(first.Event)
	if err != nil {
		return cmd.AttachReply{}, err
	}
	out := cmd.AttachReply{After: after.String(), Head: last.Sequence, Language: language, FirstSeq: missing}
	if missing == 0 && in.Hash == "" {
		return out, nil
	}
	f, state, err := d.describe(ctx, log)
	if err != nil {
		return cmd.AttachReply{}, err
	}
	if in.Hash != "" {
		same := sameHash(in.Hash, state.Hash)
		out.HashMatched = &same
	}
	if missing > 0 {
		state.Signed, err = d.sign(log, f, state.ExportedAt)
		if err != nil && !errors.Is(err, fault.New(fault.StateTooBig)) { // it can be read all the same
			return cmd.AttachReply{}, err
		}
		out.Exported = &state
	}
	return out, nil
}

// open returns the ends of a session's log. An unknown or expired session is SESSION_EXPIRED, a
// deleted one SESSION_DELETED.
func (d *responder) open(ctx context.Context, log subject.Log) (first, last *eventlog.Entry, err error) {
	if log.Tenant.IsZero() || log.Entity.IsZero() {
		return nil, nil, fault.New(fault.SessionExpired)
	}
	first, last, err = d.log.Ends(ctx, log)
	if err != nil {
		return nil, nil, err
	}
	if first == nil {
		return nil, nil, fault.New(fault.SessionExpired)
	}
	if last.Type.Tombstone() {
		return nil, nil, fault.New(fault.SessionDeleted)
	}
	over, err := d.expired(ctx, log, last)
	if err != nil {
		return nil, nil, err
	}
	if over {
		return nil, nil, fault.New(fault.SessionExpired)
	}
	return first, last, nil
}

// afterTheEnd are the events that may follow the end of a session.
var afterTheEnd = map[event.Type]bool{
	event.SessionClosed: true, event.MessageRefused: true, event.AttemptRefused: true, event.Notice: true, event.Error: true,
}

// endWindow is the number of events in which the end of a session is looked for at first.
const endWindow = 64

// expired reports whether the session was closed because its time was over. The log
// is read only if its newest event leaves that open, and from its end on.
func (d *responder) expired(ctx context.Context, log subject.Log, last *eventlog.Entry) (bool, error) {
	if !afterTheEnd[last.Type] {
		return false, nil
	}
	for n := uint64(endWindow); ; n *= 4 {
		from := last.Sequence - min(n, last.Sequence)
		over, found := false, from == 0
		err := readAll(ctx, d.log, log, eventlog.Cursor{Seq: from}, func(e *eventlog.Entry) error {
			if e.Type != event.SessionClosed {
				over, found = over && afterTheEnd[e.Type], found || !afterTheEnd[e.Type]
				return nil
			}
			c, err := event.As[event.SessionClosedData](e.Event)
			over, found = c.Reason == closedByTime, true
			return err
		})
		if found || err != nil {
			return over, err
		}
	}
}

// closedByTime is the reason of a session.closed that its timer caused.
const closedByTime = "timeout"

// wish returns the requested position. It reads the client's last acknowledgement only if the
// request names no position.
func (d *responder) wish(ctx context.Context, log subject.Log, in cmd.AttachRequest) (wish, error) {
	w := wish{after: in.After, live: in.Live}
	if in.EventID != "" {
		at, err := eventlog.ParseCursor(in.EventID)
		if err != nil {
			return w, fault.New(fault.CursorInvalid).At("last_event_id").Wrap(err)
		}
		w.event = &at
	}
	if w.event != nil || w.after != nil || w.live || in.ClientID == "" {
		return w, nil
	}
	var err error
	w.acked, err = d.acks.Get(ctx, log, id.EntityFromExternal(in.ClientID))
	return w, err
}

// sees returns SESSION_EXPIRED, as for an unknown session, if the principal does not see the one that
// the event opens. all says that it sees every one of the tenant. The owner is unknown once the first
// event has expired.
func (d *responder) sees(log subject.Log, first event.Event, principal string, all bool) error {
	var owner string
	switch first.Type {
	case event.SessionCreated:
		c, err := event.As[event.SessionCreatedData](first)
		if err != nil {
			return err
		}
		owner = cmp.Or(c.Principal, c.Owner)
	case event.SessionRestored:
		r, err := event.As[event.SessionRestoredData](first)
		if err != nil {
			return err
		}
		owner = r.Principal
	default:
		if all {
			return nil
		}
		return fault.New(fault.SessionExpired)
	}
	if d.access.MaySee(log.Tenant, owner, access.Person{Subject: principal, Operator: all}) {
		return nil
	}
	return fault.New(fault.SessionExpired)
}

// languageOf returns the language of the session that the event opens. It is empty,
// which means the dialect's own, once that event has expired.
func languageOf(first event.Event) (string, error) {
	switch first.Type {
	case event.SessionCreated:
		c, err := event.As[event.SessionCreatedData](first)
		return c.Language, err
	case event.SessionRestored:
		r, err := event.As[event.SessionRestoredData](first)
		if err != nil {
			return "", err
		}
		snap, err := decodeSnapshot(r.State)
		return snap.Preferences.Language, err
	}
	return "", nil
}

// sameHash compares hashes as clients write them, with and without their kind.
func sameHash(theirs, ours string) bool {
	theirs = strings.ToLower(strings.TrimPrefix(theirs, "sha256:"))
	return subtle.ConstantTimeCompare([]byte(theirs), []byte(ours)) == 1
}

// exportState answers cmd.Export.
func (d *responder) exportState(ctx context.Context, in cmd.ExportRequest) (event.StateExportedData, error) {
	log := sessionLog(in.Tenant, in.Session)
	first, _, err := d.open(ctx, log)
	if err == nil {
		err = d.sees(log, first.Event, in.Principal, in.All)
	}
	if err != nil {
		return event.StateExportedData{}, err
	}
	out, err := d.export(ctx, log)
	if err != nil || !in.History {
		return out, err
	}
	out.History, err = d.history(ctx, log, out.Seq, in.MaxHistory)
	return out, err
}

// offer registers the handlers of the requests with the server.
func (d *responder) offer(s *rpc.Server) {
	rpc.Handle(s, cmd.Attach, d.attach)
	rpc.Handle(s, cmd.Export, d.exportState)
	rpc.Handle(s, cmd.Import, d.importState)
	rpc.Handle(s, cmd.ShowSession, d.show)
}
