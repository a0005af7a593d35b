package gateway

import (
	"context"
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// link is a conn as its binding sees it.
type link struct{ *conn }

var _ binding.Connection = link{}

// Send implements transport.Transport.
func (l link) Send(ms ...*transport.Message) int { return l.sock.Send(ms...) }

// Force implements transport.Transport.
func (l link) Force(m *transport.Message) bool { return l.sock.Force(m) }

// End implements transport.Transport.
func (l link) End(f *fault.Fault) { l.end(f) }

// Done implements transport.Transport.
func (l link) Done() <-chan struct{} { return l.sock.Done() }

// Finish implements binding.Connection.
func (l link) Finish(code int, reason string) { l.sock.Finish(code, reason) }

// Ping implements binding.Connection.
func (l link) Ping(payload []byte) bool { return l.sock.Ping(payload) }

// Silence implements binding.Connection.
func (l link) Silence() time.Duration { return l.sock.Silence() }

// Slot implements binding.Connection.
func (l link) Slot() *stream.Slot { return l.slot }

// Context implements binding.Connection.
func (l link) Context() context.Context { return l.ctx }

// Principal implements binding.Connection.
func (l link) Principal() auth.Principal { return l.who() }

// MayAct implements binding.Connection.
func (l link) MayAct() bool { return l.mayAct() }

// Query implements binding.Connection.
func (l link) Query() url.Values { return l.query }

// Protocol implements binding.Connection.
func (l link) Protocol() string { return l.protocol() }

// Greeted implements binding.Connection.
func (l link) Greeted() { l.greeted() }

// Settle implements binding.Connection.
func (l link) Settle() { l.settle() }

// TakeUp implements binding.Connection.
func (l link) TakeUp(welcome func()) { l.takeUp(welcome) }

// Await implements binding.Connection.
func (l link) Await() bool { return l.awaited() }

// Rated implements binding.Connection.
func (l link) Rated(kept bool) {
	if kept {
		l.refused = 0
		return
	}
	l.flooded()
}

// AllowHeartbeat implements binding.Connection.
func (l link) AllowHeartbeat() bool { return l.control.Allow() }

// Underway implements binding.Connection.
func (l link) Underway(n int) { l.backlog.count(n) }

// Command implements binding.Connection.
func (l link) Command(ctx context.Context, replyTo string, cmds ...command.Command) error {
	if len(cmds) > 0 && !l.mayAct() {
		return fault.New(fault.Forbidden)
	}
	return l.transmit(ctx, replyTo, cmds...)
}

// Acknowledge implements binding.Connection.
func (l link) Acknowledge(ctx context.Context, cmd command.Command) error {
	return l.transmit(ctx, "", cmd)
}

// FaultOf implements binding.Connection.
func (l link) FaultOf(err error) *fault.Fault { return l.faultOf(err) }

// Tell implements binding.Connection.
func (l link) Tell(f *fault.Fault) { l.tell(f) }

// Record implements binding.Connection.
func (l link) Record(action id.Name, r audit.Record) { l.record(action, r) }
