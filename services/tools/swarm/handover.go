package swarm

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

// fate is the known state of a call after its handover.
type fate int

const (
	fateOver    fate = iota // has an outcome, with or without an error
	fateRefused             // did not reach the service
	fateLost                // may have reached the service, which will not answer
)

// ending is the end of a handover: JSON, or a fault.
type ending struct {
	data json.RawMessage
	fate fate
	err  error
}

func failed(f fate, err *fault.Fault) ending { return ending{fate: f, err: err} }

// handover is one call to one replica.
type handover struct {
	w      *Registry
	r      *replica
	key    serviceKey
	call   tools.Call
	told   func(tools.Notification)
	callID string // the service's name for the call
	inbox  string
	msgs   chan *nats.Msg
	over   chan struct{}
	sub    *nats.Subscription

	open      int // calls of this process to the replica, this one included
	confirmed bool
	tokens    float64 // left for notifications
	filled    time.Time
}

// Subjects distinguish the gateway's confirmation from the service's messages.
const (
	toDispatch = ".taken"
	toService  = ".said"
)

// serviceCallID returns a call's id for services: the same for every repeat, so that a service may recognise it.
func serviceCallID(c tools.Call) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q %q %q", c.Tenant, c.Scope, c.ID)))
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
}

// run hands the call over and follows it to its end.
func (h *handover) run(ctx context.Context) ending {
	h.callID, h.inbox = serviceCallID(h.call), h.w.conn.NATS().NewInbox()
	h.msgs, h.over = make(chan *nats.Msg), make(chan struct{})
	h.tokens, h.filled = noteBurst, time.Now()
	defer close(h.over)
	body, err := h.request(ctx)
	if err != nil {
		return failed(fateOver, fault.New(fault.Internal).Wrap(err))
	}
	nc := h.w.conn.NATS()
	h.sub, err = nc.Subscribe(h.inbox+".*", func(m *nats.Msg) {
		select {
		case h.msgs <- m:
		case <-h.over:
		}
	})
	if err != nil {
		return failed(fateOver, fault.New(fault.ToolsDown).Wrap(err))
	}
	defer h.sub.Unsubscribe() //nolint:errcheck // Fails only with a closed connection, which has no subscriptions.
	if err := h.sub.SetPendingLimits(newsWaiting, newsBytes); err != nil {
		return failed(fateOver, fault.New(fault.Internal).Wrap(err))
	}
	to, err := h.address()
	if err != nil {
		return failed(fateRefused, fault.New(fault.ServiceBusy).Wrap(err))
	}
	h.open = h.w.opened(h.r)
	switch err := nc.PublishRequest(to, h.inbox+toDispatch, body); {
	case errors.Is(err, nats.ErrMaxPayload):
		return failed(fateOver, fault.Newf(fault.ToolBadInput, "The arguments are larger than a message may be. Send less at a time.").Wrap(err))
	case err != nil:
		return failed(fateRefused, fault.New(fault.ToolsDown).Wrap(err))
	}
	return h.wait(ctx)
}

// address returns the subject of the replica's connection.
func (h *handover) address() (string, error) {
	gateway, err := id.ParseName(h.r.participant.Gateway)
	if err != nil {
		return "", err
	}
	connection, err := id.ParseName(h.r.participant.Connection)
	return subject.Direct(gateway, connection), err
}

// request returns the encoded event that hands the call over.
func (h *handover) request(ctx context.Context) ([]byte, error) {
	c := h.call
	data := event.CallRequestedData{
		CallID: h.callID, ServiceID: h.key.id, Tool: c.Tool, Arguments: c.Arguments,
		TaskID: c.TaskID, AgentID: c.AgentID, ClientID: c.ClientID, Priority: c.Priority,
		Inbox: h.inbox + toService,
	}
	if absent(data.Arguments) {
		data.Arguments = json.RawMessage("{}")
	}
	now := h.w.now()
	if end, ok := ctx.Deadline(); ok {
		data.Deadline = now.Add(time.Until(end))
	}
	log := subject.Log{Tenant: c.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(c.TaskID)}
	if c.TaskID == "" {
		log.Entity = id.EntityFromExternal(h.callID)
	}
	e, err := event.New(log, h.callID+".aside", "waggle/tools/"+h.w.conn.Instance(), now, data)
	if err != nil {
		return nil, err
	}
	e.TraceParent = telemetry.Inject(ctx)
	return json.Marshal(e)
}

// wait follows an active call.
func (h *handover) wait(ctx context.Context) ending {
	confirm := time.NewTimer(h.w.waits.Confirm)
	defer confirm.Stop()
	var gone <-chan time.Time
	for {
		if n, err := h.sub.Dropped(); err == nil && n > 0 {
			return failed(fateOver, fault.Newf(fault.ToolFailed, "The service's response exceeds the limit. The call may have taken effect."))
		}
		v, news := h.w.look(h.key.tenant)
		switch {
		case v.online[h.r.id]:
			gone = nil
		case gone == nil:
			gone = time.After(h.w.waits.Lost)
		}
		select {
		case m := <-h.msgs:
			if end := h.take(m); end != nil {
				return *end
			}
		case <-news:
		case <-confirm.C:
			if !h.w.conn.Up() {
				confirm.Reset(h.w.waits.Confirm)
			} else if !h.confirmed {
				return failed(fateLost, fault.Newf(fault.ServiceLost, "The gateway of the service did not confirm the call. The call may have taken effect."))
			}
		case <-gone:
			return failed(fateLost, fault.New(fault.ServiceLost))
		case <-ctx.Done():
			return ending{err: abandoned(context.Cause(ctx))}
		}
	}
}

// abandoned turns the cause of a context into a fault. A call of a service cannot be stopped: the handover ignores its later
// messages.
func abandoned(cause error) error {
	if errors.Is(cause, calls.ErrStopping) {
		return fault.New(fault.ServiceLost).Wrap(cause)
	}
	return calls.Interrupted(cause, true)
}

// take handles one message. It returns nil unless the handover ends with it.
func (h *handover) take(m *nats.Msg) *ending {
	if m.Subject == h.inbox+toDispatch {
		load, taken := command.ParseCallTaken(m.Data)
		if taken {
			h.confirmed = true
			h.w.measured(h.r, load, h.open)
		}
		if h.confirmed {
			return nil
		}
		return &ending{fate: fateRefused, err: fault.New(fault.ServiceBusy)}
	}
	var news command.CallNews
	if err := json.Unmarshal(m.Data, &news); err != nil {
		h.w.log.Warn().Err(err).Msg("gateway message dropped: not decodable")
		return nil
	}
	if m.Subject != h.inbox+toService || news.CallID != h.callID || news.ServiceID != h.key.id {
		return nil
	}
	h.confirmed = true
	if n := news.Notification; n != nil {
		h.note(n)
	}
	if !news.Final {
		return nil
	}
	end := endingOf(news)
	return &end
}

// endingOf returns the end of a call from its gateway's message.
func endingOf(news command.CallNews) ending {
	code := fault.Code(news.Code)
	switch {
	case code == "" && absent(news.Result):
		return ending{data: json.RawMessage("null")}
	case code == "":
		return ending{data: news.Result}
	case code == fault.ServiceLost:
		return failed(fateLost, fault.New(code))
	case code == fault.BadOutput, code == fault.MessageTooBig:
		return failed(fateOver, fault.Newf(code, "%s", bound.Shorten(news.Error, bound.Message)))
	}
	text := bound.Shorten(news.Error, bound.Message)
	if code != fault.ToolFailed && code != fault.TaskFailed {
		text = bound.Shorten(news.Code, bound.Title) + ": " + text
	}
	why := fault.Newf(fault.ToolFailed, "The service failed: %s", text)
	if len(news.Details) <= bound.Message {
		why = why.With(news.Details)
	}
	return failed(fateOver, why)
}

// note passes a notification on, unless it exceeds the limits of size or rate.
func (h *handover) note(n *event.CallNotifiedData) {
	now := time.Now()
	h.tokens = min(noteBurst, h.tokens+now.Sub(h.filled).Seconds()*noteRate)
	h.filled = now
	if size := len(n.Message) + len(n.Data) + len(n.NotificationType); size > maxNote || h.tokens < 1 {
		h.w.missed()
		return
	}
	h.tokens--
	if n.At.IsZero() {
		n.At = now.UTC().Truncate(time.Millisecond)
	}
	h.told(tools.Notification{Type: n.NotificationType, Message: n.Message, Data: n.Data, At: n.At})
}
