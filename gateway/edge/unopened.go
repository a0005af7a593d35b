package edge

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// openID begins the ids of the commands that make a session. Each try has an id of its own:
// the bus would drop a second one with the id of a refused one.
const openID = "open-"

// Unopened is a session that has a name and no log, until the first command that needs it
// opens it. Open is called by one goroutine; the other methods by any.
type Unopened struct {
	log    subject.Log
	wishes event.Preferences
	seen   chan struct{} // closed, by once, when the session exists
	once   sync.Once

	foreign bool // another principal has named it

	mu      sync.Mutex
	command string            // the id of the command that opens it; empty = none waits
	answer  chan *fault.Fault // the refusal of that command
}

// NewUnopened returns the session that the log would be of, with the preferences that it opens with.
func NewUnopened(log subject.Log, wishes event.Preferences) *Unopened {
	return &Unopened{log: log, wishes: wishes, seen: make(chan struct{})}
}

// Preferences returns what the session opens with.
func (u *Unopened) Preferences() event.Preferences { return u.wishes }

// By sets the device that the session is opened with.
func (u *Unopened) By(client string) { u.wishes.ClientID = client }

// Seen notes that the session exists.
func (u *Unopened) Seen() { u.once.Do(func() { close(u.seen) }) }

// Exists reports whether the session has been seen.
func (u *Unopened) Exists() bool {
	select {
	case <-u.seen:
		return true
	default:
		return false
	}
}

// Refused takes the refusal of the command that opens the session. It returns false for that of
// any other.
func (u *Unopened) Refused(e event.Event) bool {
	d, err := event.As[event.CommandRefusedData](e)
	if e.Type != event.CommandRefused || err != nil || !strings.HasPrefix(d.CommandID, openID) {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if d.CommandID == u.command {
		u.command = ""
		u.answer <- fault.Newf(fault.Code(d.Code), "%s", d.Message).At(d.Field)
	}
	return true
}

// MayOpen returns why the principal may not open the session, nil if it may.
func (u *Unopened) MayOpen() error {
	if u.foreign {
		return fault.Newf(fault.Forbidden, "This session has not started. Only the user who named it can send the first message.")
	}
	return nil
}

// Socket is the connection that a session is opened from.
type Socket interface {
	// Client returns the client of the connection.
	Client() *Client
	// End ends the connection with a fault.
	End(f *fault.Fault)
	// Done is closed when the connection has ended.
	Done() <-chan struct{}
}

// Open makes the session for commands that the client may send, if it does not exist, and returns once it does. The stream
// that shows the log calls Seen. A connection that waits too long for the service is ended, so that
// its client comes back and sends again what has no answer.
func (u *Unopened) Open(ctx context.Context, s Socket, maxWait time.Duration, replyTo string, cmds ...command.Command) error {
	if u.Exists() {
		return nil
	}
	if err := u.MayOpen(); err != nil {
		return err
	}
	c := s.Client()
	if err := c.MayBegin(ctx, cmds...); err != nil {
		return err
	}
	cmd, err := Opening(u.log, command.OpenSession{Dialect: c.Protocol(), Preferences: u.wishes})
	if err != nil {
		return err
	}
	u.await(cmd.ID)
	if err := c.Do(ctx, replyTo, cmd); err != nil {
		return err
	}
	late := time.NewTimer(maxWait)
	defer late.Stop()
	select {
	case <-u.seen:
		return nil
	case f := <-u.answer:
		return f
	case <-late.C:
		f := fault.Newf(fault.Overloaded, "The session service did not respond. Reconnect and send the message again.")
		s.End(f)
		return f
	case <-s.Done():
		return fault.New(fault.Overloaded)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Opening returns the command that makes the session of a log.
func Opening(log subject.Log, as command.OpenSession) (command.Command, error) {
	data, err := encoded(command.Open, as)
	return command.Command{
		ID: openID + NewID(), Service: command.Session, Verb: command.Open, Tenant: log.Tenant, Key: log.Entity, Data: data,
	}, err
}

// await has the refusal of the command with the id answered.
func (u *Unopened) await(commandID string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.command, u.answer = commandID, make(chan *fault.Fault, 1)
}
