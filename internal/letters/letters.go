// Package letters reads, resends and discards dead letters: the commands that services have given up.
//
// Each role returns commands to its own queue only, the gateway those that clients may send, and one role alone discards
// letters.
package letters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxReason bounds the reason in a list.
const maxReason = 2000

// errNoCommand means that the message which was given up held no command.
var errNoCommand = fault.Newf(fault.InvalidField, "This dead letter has no command, so it cannot be sent again. Discard it.").At("seq")

// unknown is the fault of a letter that the tenant does not have.
func unknown() *fault.Fault {
	return fault.Newf(fault.NotFound, "This dead letter does not exist: it was sent again, discarded, or has expired.")
}

// Letter is a stored dead letter.
type Letter struct {
	Sequence uint64 `json:"sequence"` // in the stream
	Subject  string `json:"subject"`
	command.DeadLetter
}

// Address returns what the command was addressed to.
func (l Letter) Address() (subject.Command, error) { return subject.ParseDead(l.Subject) }

// Content returns the command, or a fault if the letter holds none.
func (l Letter) Content() (cmd.Command, error) {
	var c cmd.Command
	at, err := l.Address()
	if err != nil || json.Unmarshal(l.Command, &c) != nil || c.Address() != at || c.ID == "" {
		return cmd.Command{}, errNoCommand
	}
	return c, nil
}

// Renewed returns the command as it is sent again. A repeat queues nothing: the bus drops it within two minutes, and later
// the service finds the command in its log.
func (l Letter) Renewed() (cmd.Command, error) {
	c, err := l.Content()
	c.Again = "letter-" + strconv.FormatUint(l.Sequence, 10) // or the bus could take it for a repeat of the one that was given up
	return c, err
}

// Summary returns the letter as an item of a list.
func (l Letter) Summary() api.DeadLetter {
	out := api.DeadLetter{Seq: l.Sequence, Reason: l.Reason, Deliveries: l.Deliveries, Time: l.Time}
	if len(out.Reason) > maxReason {
		out.Reason = strings.ToValidUTF8(out.Reason[:maxReason], "") + " ..."
	}
	if at, err := l.Address(); err == nil {
		out.Service, out.Verb, out.Key = at.Service.String(), at.Verb.String(), at.Key.String()
	}
	if c, err := l.Content(); err == nil {
		out.CommandID, out.Principal, out.SentAt = c.ID, c.Principal, c.Time
	}
	return out
}

// Detail returns the letter with its command, without the proofs that a person wanted it.
func (l Letter) Detail() (api.DeadLetterDetail, error) {
	out := api.DeadLetterDetail{DeadLetter: l.Summary(), Command: l.Command}
	c, err := l.Content()
	if err != nil {
		return out, nil //nolint:nilerr // it is shown as it is
	}
	c.Signature, c.Origin = "", nil
	if out.Command, err = json.Marshal(c); err != nil {
		return out, fmt.Errorf("encode the command of dead letter %d: %w", l.Sequence, err)
	}
	return out, nil
}

// Box holds the dead letters. It is safe for concurrent use.
type Box struct {
	conn   *bus.Conn
	reader newest.Reader
	sender *command.Sender
}

// New returns the box of an installation. The store must be open as long as the box is used.
func New(conn *bus.Conn, log *eventlog.Store) *Box {
	return &Box{conn: conn, reader: newest.Reader{Log: log, Stream: subject.StreamDead}, sender: command.NewSender(conn)}
}

// Page returns the newest letters of a tenant that lie before a sequence; 0 means the end.
func (b *Box) Page(ctx context.Context, in cmd.PageRequest) (api.DeadLetterList, error) {
	out := api.DeadLetterList{DeadLetters: []api.DeadLetter{}}
	page, err := b.reader.Read(ctx, subject.DeadIn(in.Tenant), in.Before, in.Limit)
	if err != nil {
		return out, err
	}
	for _, e := range page.Entries {
		l, err := letterOf(e)
		if err != nil {
			return out, err
		}
		out.DeadLetters = append(out.DeadLetters, l.Summary())
	}
	if out.Total, out.More = page.Total, page.More; page.More {
		out.Next = strconv.FormatUint(page.Entries[len(page.Entries)-1].Sequence, 10)
	}
	return out, nil
}

// Letter returns a letter of a tenant, or NOT_FOUND.
func (b *Box) Letter(ctx context.Context, in cmd.LetterRequest) (Letter, error) {
	e, err := b.reader.At(ctx, in.Sequence)
	switch {
	case errors.Is(err, newest.ErrNone) || in.Sequence == 0:
		return Letter{}, unknown()
	case err != nil:
		return Letter{}, err
	}
	l, err := letterOf(e)
	if err != nil {
		return Letter{}, err
	}
	if at, err := l.Address(); err != nil || at.Tenant != in.Tenant {
		return Letter{}, unknown()
	}
	return l, nil
}

// Resend returns the command of a letter to the queue of the service, and leaves the letter.
func (b *Box) Resend(ctx context.Context, service id.Name, in cmd.LetterRequest) (cmd.ResendReply, error) {
	l, err := b.Letter(ctx, in)
	if err != nil {
		return cmd.ResendReply{}, err
	}
	if at, err := l.Address(); err != nil || at.Service != service {
		return cmd.ResendReply{}, unknown()
	}
	c, err := l.Renewed()
	if err != nil {
		return cmd.ResendReply{}, err
	}
	return cmd.ResendReply{CommandID: c.ID}, b.sender.Send(ctx, c)
}

// Discard removes a letter of a tenant.
func (b *Box) Discard(ctx context.Context, in cmd.LetterRequest) error {
	if _, err := b.Letter(ctx, in); err != nil {
		return err
	}
	s, err := b.conn.JS().Stream(ctx, subject.StreamDead)
	if err == nil {
		err = s.DeleteMsg(ctx, in.Sequence)
	}
	if errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		if _, err := b.Letter(ctx, in); err != nil { // another request was faster
			return err
		}
	}
	if err != nil {
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("discard dead letter %d: %w", in.Sequence, err))
	}
	return nil
}

func letterOf(e newest.Entry) (Letter, error) {
	l := Letter{Sequence: e.Sequence, Subject: e.Subject}
	if err := json.Unmarshal(e.Data, &l.DeadLetter); err != nil {
		return l, fmt.Errorf("decode dead letter %d: %w", e.Sequence, err)
	}
	return l, nil
}
