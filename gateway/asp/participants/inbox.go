package participants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Parameters of the query of a client's socket.
const (
	queryClient = "clientId"    // the client that comes back
	queryToken  = "resumeToken" // and what shows that it is
)

// welcomeDelay is how long after the upgrade a client's welcome is sent: the SDK loses
// one that it reads together with the answer to its handshake. Of 150 that came 1 ms
// later it lost 4, from 2 ms on none.
const welcomeDelay = 15 * time.Millisecond

// againDelay is the time from the frames of an event to their repeat: the SDK looks for the repeat only after it has handled
// everything that came in one read, as with the welcome.
const againDelay = welcomeDelay

var _ stream.Binding = (*inbox)(nil)

// welcomeClient opens the client's inbox, lists the client and shows the inbox.
func (p *Participant) welcomeClient() error {
	delay := time.NewTimer(welcomeDelay)
	defer delay.Stop()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	p.wg.Go(func() { // a client that has gone needs no inbox
		select {
		case <-p.c.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	req, err := p.comesBack()
	if err != nil {
		return err
	}
	if err := p.findWatched(); err != nil {
		return err
	}
	if err := p.awaitTasks(ctx); err != nil {
		return err
	}
	reply, in, after, err := p.open(ctx, req)
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.ClientNotFound {
		p.refuse(asp.Order{}, f)
		p.c.Finish(fault.Lookup(fault.SessionNotFound).Close, string(f.Code)) // it need not come back as it is
	}
	if err != nil {
		return err
	}
	select {
	case <-delay.C:
	case <-ctx.Done():
	}
	p.c.Force(transport.Text(p.codec.Welcome(p.g.Link(p.id), &reply)))
	p.show(in, after)
	p.showWatched()
	return nil
}

// comesBack reads the query of the socket.
func (p *Participant) comesBack() (req command.OpenClientRequest, err error) {
	q := p.c.Query()
	req.ClientID, req.Token = q.Get(queryClient), q.Get(queryToken)
	if !q.Has(binding.QueryAfter) {
		return req, nil
	}
	after, err := strconv.ParseUint(q.Get(binding.QueryAfter), 10, 64)
	if err != nil || req.ClientID == "" {
		return req, fault.Newf(fault.CursorInvalid, "after must be the seq of the last event you received, and needs clientId and resumeToken.").At(binding.QueryAfter)
	}
	req.After = &after
	return req, nil
}

// awaitTasks waits until a task service can open inboxes.
func (p *Participant) awaitTasks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.g.ReadyTimeout)
	defer cancel()
	err := p.g.Directory.Wait(ctx, func(d *directory.Directory) bool {
		return len(d.Members(directory.WhatService, command.Task)) > 0
	})
	if err != nil {
		return fault.Newf(fault.Overloaded, "The services for this request are not running. Try again later.").Wrap(err)
	}
	return nil
}

// open opens an inbox and takes the client's presence in the directory.
func (p *Participant) open(ctx context.Context, req command.OpenClientRequest) (reply command.OpenClientReply, in *inbox, after eventlog.Cursor, err error) {
	who := p.c.Client().Principal()
	req.Tenant, req.Principal = who.Tenant, who.Subject
	if may := p.g.MayOpenInbox; may != nil && req.ClientID == "" {
		if err := may(who); err != nil {
			return reply, nil, after, err
		}
	}
	if err := p.c.Client().Ask(ctx, edge.Request{Service: command.Task, Verb: command.OpenClient, In: req}, &reply); err != nil {
		return reply, nil, after, err
	}
	entity, err := id.ParseEntity(reply.ClientID)
	if err == nil {
		after, err = eventlog.ParseCursor(reply.After)
	}
	if err != nil {
		return reply, nil, after, fmt.Errorf("the task service's answer for a client: %w", err)
	}
	if self := p.registered(); self.ID != reply.ClientID {
		self.ID, self.Online, self.Status = reply.ClientID, true, command.StatusActive
		if _, err := p.enter(ctx, self); err != nil {
			return reply, nil, after, err
		}
	}
	in = &inbox{p: p, codec: logCodec{p.codec}, log: subject.Log{Tenant: who.Tenant, Kind: id.KindInbox, Entity: entity}}
	in.has, in.stored = after.Seq, after.Seq
	o := stream.Options{
		Life: p.c.Context(), Log: in.log, Codec: in.codec, To: p.c, Slot: p.c.Slot(), Binding: in, Shown: in.again,
		Watches: p.c.Client().Watches(),
	}
	if p.watched() != (subject.Log{}) {
		o.Spare = p.g.QueueBytes / 2 // as of the run that is shown beside it
	}
	in.stream = stream.New(p.g.Streams, o)
	return reply, in, after, nil
}

// show shows an inbox on the socket, instead of the one before.
func (p *Participant) show(in *inbox, after eventlog.Cursor) {
	p.mu.Lock()
	p.inbox = in
	p.mu.Unlock()
	in.stream.Watch(after, nil)
}

// probe asks the client for a sign that it has what was sent, if something was. It does
// not block.
func (in *inbox) probe() {
	seq, complete := in.stream.Queued()
	in.mu.Lock()
	due := complete && in.asked == "" && seq > in.has
	payload := "has " + strconv.FormatUint(seq, 10)
	if due {
		in.asked, in.probed = payload, seq
	}
	in.mu.Unlock()
	if due && !in.p.c.Ping([]byte(payload)) {
		in.mu.Lock()
		in.asked = ""
		in.mu.Unlock()
	}
}

func (p *Participant) sendAck(ctx context.Context, log subject.Log, seq uint64) error {
	data, err := json.Marshal(command.AckEvents{ClientID: log.Entity.String(), Seq: seq})
	if err != nil {
		return fmt.Errorf("encode %s: %w", command.AckClient, err)
	}
	who := p.c.Client().Principal()
	return p.c.Client().Do(ctx, "", command.Command{
		ID: edge.NewID(), Service: command.Task, Verb: command.AckClient, Tenant: log.Tenant, Key: log.Entity,
		Principal: who.Subject, Time: p.g.Clock().UTC(), Data: data,
	})
}

// Seen implements stream.Binding.
func (in *inbox) Seen(*stream.Stream) {}

// again repeats what an event says, a moment after the event. It does not block.
func (in *inbox) again(e *eventlog.Entry, held stream.Held) {
	var frames [][]byte
	stream.Safely(in.p.g.Logger, in.log, func() { frames = in.p.codec.Repeat(e.Event) })
	if len(frames) == 0 {
		return
	}
	release := func() {}
	if held != nil {
		release = held()
	}
	time.AfterFunc(againDelay, func() {
		defer release()
		switch {
		case !in.passed():
		case held != nil: // too large to be forced into a full queue
			in.p.put(frames)
		default:
			for _, b := range frames {
				in.p.c.Force(transport.Text(b))
			}
		}
	})
}

// passed waits until all frames of the events shown so far are in the queue of the socket, so that a repeat follows its original.
// It returns false if the socket has ended.
func (in *inbox) passed() bool {
	for {
		in.p.mu.Lock()
		room := in.p.room
		in.p.mu.Unlock()
		if _, complete := in.stream.Queued(); complete {
			return true
		}
		select {
		case <-room:
		case <-in.p.c.Done():
			return false
		}
	}
}

// Expired implements stream.Binding: events are gone that the client has not had.
func (in *inbox) Expired(_ *stream.Stream, first uint64) {
	in.p.c.Force(transport.Text(in.codec.Truncated(first, in.p.g.Clock())))
}

// Failed implements stream.Binding.
func (in *inbox) Failed(_ *stream.Stream, err error) { binding.Lose(in.p.c, err) }

// Deleted implements stream.Binding. Inboxes are not deleted.
func (in *inbox) Deleted(*stream.Stream) { binding.Lose(in.p.c, eventlog.ErrDeleted) }

// Notice implements stream.Binding.
func (in *inbox) Notice(_ *stream.Stream, d event.NoticeData) {
	in.p.g.ShowNotice(in.p.c, in.codec, in.log, d)
}
