package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// restore is one import, verified.
type restore struct {
	log     subject.Log
	eventID string // derived from the signed state: a repeat is the same event
	data    event.SessionRestoredData
	goesOn  bool // the import holds a run to resume
	all     bool // it is an operator's
}

// importState answers cmd.Import. A repeat changes nothing and has the same answer.
func (d *responder) importState(ctx context.Context, in cmd.ImportRequest) (cmd.ImportReply, error) {
	if err := d.signatures.Import(in, d.now()); err != nil {
		return cmd.ImportReply{}, err
	}
	r, err := d.verify(in)
	if err != nil {
		return cmd.ImportReply{}, err
	}
	if err := d.quota.Hold(ctx, r.log.Tenant, in.Principal, r.log.Entity); err != nil {
		return cmd.ImportReply{}, err
	}
	f, err := d.restore(ctx, r)
	if err != nil {
		return cmd.ImportReply{}, fmt.Errorf("restore session %s: %w", r.log.Entity, err)
	}
	if f.events[r.eventID] {
		if err := d.resume(ctx, r); err != nil {
			return cmd.ImportReply{}, fmt.Errorf("resume session %s: %w", r.log.Entity, err)
		}
	}
	return cmd.ImportReply{Session: r.log.Entity, Restored: f.former >= r.data.ExportedSeq, Exported: &cmd.Exported{
		At: r.data.ExportedAt, Seq: r.data.ExportedSeq, Stage: r.data.Stage, MessageCount: r.data.MessageCount,
	}}, nil
}

// verify checks the signed state and makes the event of it.
func (d *responder) verify(in cmd.ImportRequest) (restore, error) {
	if len(d.keys) == 0 {
		return restore{}, fault.Newf(fault.StateTampered, "Signed states cannot be verified here: session.state_keys is not set. Ask the operator to set it, or create a new session.")
	}
	state, at, err := d.keys.Open(in.Signed, d.now())
	if err != nil {
		return restore{}, err
	}
	var p portable
	if err := json.Unmarshal(state, &p); err != nil {
		return restore{}, notOurs("It is not the state of a session.").Wrap(err)
	}
	if p.Tenant.IsZero() || p.Tenant != in.Tenant {
		return restore{}, notOurs("It was exported for another tenant.")
	}
	session, err := id.ParseEntity(p.SessionID)
	if err != nil || p.Seq == 0 {
		return restore{}, notOurs("It names no session with events.").Wrap(err)
	}
	snap, err := decodeSnapshot([]byte(p.Snapshot))
	if err != nil {
		return restore{}, notOurs("It is not the state of a session.").Wrap(err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s", at.Unix(), state))
	return restore{
		log: sessionLog(in.Tenant, session), eventID: "restored-" + hex.EncodeToString(sum[:12]),
		all:    in.All,
		goesOn: snap.Stage() != idle || len(snap.Queued) > 0,
		data: event.SessionRestoredData{
			Dialect: p.Dialect, Principal: in.Principal, ExportedAt: at, ExportedSeq: p.Seq, Stage: snap.Stage(),
			MessageCount: snap.Messages, Warnings: snap.Warnings, State: []byte(p.Snapshot),
		},
	}, nil
}

// idle is the stage of a session without a run.
const idle = "idle"

func notOurs(reason string) *fault.Fault {
	return fault.Newf(fault.StateTampered, "The signed state cannot be used. %s Use one that this installation exported for you.", reason)
}

// restore appends the event, unless the log knows as much as the signed state: then
// its own events count. It returns the log as it is then.
//
// A session that exists is restored by its owner or an operator: to others it does not exist.
func (d *responder) restore(ctx context.Context, r restore) (*folded, error) {
	l := d.openLog(r.log, (*folded).fold)
	_, err := l.Step(ctx, func(f *folded) (decision.Decision, error) {
		switch {
		case f.state.Deleted:
			return decision.Decision{}, fault.New(fault.SessionDeleted)
		case f.state.Seq > 0 && f.state.Owner() != r.data.Principal && f.state.Owner() != "" && !r.all:
			return decision.Decision{}, notOurs("The session belongs to another principal.")
		case f.events[r.eventID], f.upTo >= r.data.ExportedSeq:
			return decision.Decision{}, nil
		case f.state.Active() != nil, f.state.Waiting() > 0:
			return decision.Decision{}, fault.New(fault.SessionBusy)
		}
		return decision.Of(decision.Fact{ID: r.eventID, Data: r.data}), nil
	})
	return l.State(), err
}

// resume starts the session here: it sets the expiry and resumes the active run.
func (d *responder) resume(ctx context.Context, r restore) error {
	due := d.now().Add(d.ttl)
	if err := d.commands.SetTimer(ctx, expiry(r.log), due); err != nil {
		return err
	}
	if !r.goesOn {
		return nil
	}
	return d.commands.Send(ctx, cmd.Command{
		ID: r.eventID + ".resume", Service: cmd.Pipeline, Verb: cmd.Resume, Tenant: r.log.Tenant, Key: r.log.Entity,
		Source: source, Time: d.now(), Data: json.RawMessage(`{}`), TraceParent: telemetry.Inject(ctx),
	})
}
