package gateway

import (
	"time"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Close codes of RFC 6455, section 7.4.1.
const (
	closeTryLater = 1013
	closePrivate  = 4000 // from here on the codes are ours
)

var (
	_ ws.Handler = (*conn)(nil)
	_ ws.Prober  = (*conn)(nil)
)

// End implements transport.Transport: it closes the socket with the fault's code. A frame before it explains codes of
// our own and codes with several meanings.
func (c *conn) End(f *fault.Fault) {
	code := ws.CloseCode(f)
	if code == closeTryLater || code == binding.CloseInternal || code >= closePrivate {
		c.Tell(f)
	}
	c.Socket.End(f)
}

// Low implements ws.Handler: the queue has drained.
func (c *conn) Low() { c.binding.Room() }

// Pong implements ws.Prober.
func (c *conn) Pong(payload []byte) { c.binding.Pong(payload) }

// Control implements ws.Handler: control frames have a rate of their own.
func (c *conn) Control() bool {
	c.s.met.frames.Inc()
	return c.control.Allow()
}

// Ended implements ws.Handler: the client is stuck, silent or slow.
func (c *conn) Ended(f *fault.Fault) {
	c.s.dep.Logger.Debug().Str("code", string(f.Code)).Msg("end socket")
}

// Tick implements ws.Handler: it ends sockets whose credentials have lapsed or never came, and
// those that have waited too long for services.
func (c *conn) Tick(time.Time) {
	now := c.s.dep.Clock()
	c.mu.Lock()
	p, known, started, ready := c.principal, c.known, c.started, c.ready
	c.mu.Unlock()
	lapsed := c.s.lapsed(p)
	switch {
	case !known:
		if c.denied == nil && now.Sub(c.born) > c.s.cfg.FirstMessage {
			c.End(fault.New(fault.HandshakeSlow))
		}
	case lapsed != nil:
		c.End(lapsed)
	case !ready && !started.IsZero() && now.Sub(started) > c.s.cfg.ReadyTimeout:
		c.End(fault.Newf(fault.Overloaded, "The services that answer are not running. Try again later."))
	default:
		c.binding.Tick(now)
	}
}

// lapsed returns why the credentials of a principal are no longer valid, or nil.
func (s *Server) lapsed(p auth.Principal) *fault.Fault {
	r, revocable := s.dep.Auth.(auth.Revoker)
	switch {
	case !p.Expires.IsZero() && !s.dep.Clock().Before(p.Expires):
		return fault.New(fault.Expired)
	case revocable && r.Revoked(p):
		return fault.New(fault.Unauthenticated)
	}
	return nil
}
