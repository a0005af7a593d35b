package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/task/inbox"
)

// clients keeps the inboxes of clients.
type clients struct {
	*base

	inboxes *inbox.Inboxes
}

// open opens the inbox of a new client, or returns where a returning client resumes. It
// reports another principal's inbox as unknown.
func (cl *clients) open(ctx context.Context, in cmd.OpenClientRequest) (cmd.OpenClientReply, error) {
	if in.Tenant.IsZero() {
		return cmd.OpenClientReply{}, fault.New(fault.InvalidField).At("tenant")
	}
	if in.ClientID == "" {
		client, token, at, err := cl.inboxes.Create(ctx, in.Tenant, in.Principal)
		return cmd.OpenClientReply{ClientID: client, Token: token, After: at.String()}, err
	}
	log := inbox.LogOf(in.Tenant, in.ClientID)
	last, own, err := cl.inboxes.Last(ctx, log, inbox.Owner{Client: in.ClientID, Principal: in.Principal, Token: in.Token})
	switch {
	case err != nil:
		return cmd.OpenClientReply{}, err
	case !own:
		return cmd.OpenClientReply{}, fault.New(fault.ClientNotFound)
	}
	after, err := cl.resumeAt(ctx, log, in.After, last)
	if err != nil {
		return cmd.OpenClientReply{}, err
	}
	return cmd.OpenClientReply{ClientID: in.ClientID, Token: in.Token, After: after.String(), Resumed: true}, nil
}

// resumeAt returns the position from which a client resumes: the one that it names, or else its
// acknowledged one.
func (cl *clients) resumeAt(ctx context.Context, log subject.Log, after *uint64, last eventlog.Cursor) (eventlog.Cursor, error) {
	var at uint64
	if after == nil {
		noted, err := cl.acks.Get(ctx, log, log.Entity)
		if err != nil {
			return last, err
		}
		at = min(noted, last.Seq)
	} else if at = *after; at > last.Seq {
		f := fault.Newf(fault.CursorInvalid, "after is %d, beyond the newest event of this client (%d).", at, last.Seq)
		return last, f.At("after").Unlike("at most "+strconv.FormatUint(last.Seq, 10), strconv.AppendUint(nil, at, 10))
	}
	if at == last.Seq {
		return last, nil
	}
	return eventlog.Cursor{Seq: at}, nil
}

// name records a client's description of itself, if it has changed.
func (cl *clients) name(ctx context.Context, in cmd.ParticipantRequest) (event.InboxRegisteredData, error) {
	d, err := data[event.InboxRegisteredData](in)
	if err != nil {
		return d, err
	}
	d.ClientID = in.ID
	known, err := cl.inboxes.Describe(ctx, inbox.LogOf(in.Tenant, in.ID), d)
	if err == nil && !known {
		err = fault.New(fault.ClientNotFound)
	}
	return d, err
}

// message accepts a message from one client to another. Once it returns, the message is stored
// for delivery until it expires.
func (cl *clients) message(ctx context.Context, in cmd.ParticipantRequest) (cmd.ClientNote, error) {
	d, err := data[cmd.ClientNote](in)
	if err != nil {
		return d, err
	}
	known := false
	if d.TargetID != "" {
		if known, err = cl.inboxes.Has(ctx, inbox.LogOf(in.Tenant, d.TargetID)); err != nil {
			return d, err
		}
	}
	if !known {
		return d, fault.New(fault.ClientNotFound)
	}
	m := event.InboxMessagedData{
		MessageID: cmp.Or(d.MessageID, uuid.NewString()), SenderID: in.ID, SenderName: in.Name, TargetID: d.TargetID,
		MessageType: d.MessageType, Data: d.Data, ExpiresAt: cl.cfg.Now().Add(cl.cfg.Keep).UTC(),
	}
	return d, cl.send(ctx, cmd.Command{
		ID: m.MessageID, Service: cmd.Task, Verb: cmd.TellClient, Tenant: in.Tenant, Key: id.EntityFromExternal(d.TargetID),
		Principal: in.Principal, Data: encode(m),
	})
}

// tell handles cmd.TellClient: it appends a message to a client's log, once. It drops an expired
// message, and one for an unknown client.
func (cl *clients) tell(ctx context.Context, c cmd.Command) error {
	var m event.InboxMessagedData
	if err := c.Decode(&m); err != nil {
		return command.Permanent(err)
	}
	if !m.ExpiresAt.IsZero() && cl.cfg.Now().After(m.ExpiresAt) {
		return nil
	}
	log := subject.Log{Tenant: c.Tenant, Kind: id.KindInbox, Entity: c.Key}
	_, err := cl.inboxes.Add(ctx, log, c.ID+".message", m)
	if errors.Is(err, eventlog.ErrRefused) {
		return command.Permanent(err)
	}
	return err
}

// acknowledge handles cmd.AckClient: it stores the position up to which a client has read its
// inbox. A position beyond the end counts as the end.
func (cl *clients) acknowledge(ctx context.Context, c cmd.Command) error {
	var in cmd.AckEvents
	if err := c.Decode(&in); err != nil {
		return command.Permanent(err)
	}
	log := subject.Log{Tenant: c.Tenant, Kind: id.KindInbox, Entity: c.Key}
	last, err := cl.deps.Log.Last(ctx, log)
	if err != nil {
		return err
	}
	if seq := min(in.Seq, last.Seq); seq > 0 {
		return cl.acks.Put(ctx, log, log.Entity, seq)
	}
	return nil
}

// relay copies events that the client's log lacks into it.
func (cl *clients) relay(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	if len(l.inbox) == 0 {
		return nil
	}
	if err := cl.inboxes.Relay(ctx, inbox.LogOf(h.Ref.Tenant, l.Task().ClientID), h.Ref, l.inbox); err != nil {
		return fmt.Errorf("tell the client: %w", err)
	}
	l.inbox = nil
	return nil
}
