package gateway

import (
	"time"

	"github.com/waggle-dev/waggle/gateway/wire"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Close codes of RFC 6455, section 7.4.1.
const (
	closePolicy   = 1008
	closeInternal = 1011
)

var _ wire.Handler = (*conn)(nil)

// end tells the client of a fault and closes the socket with the fault's code.
func (c *conn) end(f *fault.Fault) {
	code := fault.Lookup(f.Code).Close
	if code == 0 {
		code = closeInternal
	}
	c.tell(f)
	c.sock.Finish(code, string(f.Code))
}

// Low implements wire.Handler: the queue has drained.
func (c *conn) Low() {
	if f := c.shown(); f != nil {
		f.low()
	}
}

// Control implements wire.Handler: control frames have a rate of their own.
func (c *conn) Control() bool { return c.control.Allow() }

// Ended implements wire.Handler: the socket was ended by the hub.
func (c *conn) Ended(f *fault.Fault) {
	c.s.dep.Logger.Debug().Str("code", string(f.Code)).Msg("a socket was ended")
}

// Tick implements wire.Handler: credentials end, and so does the patience with
// sockets that never show any.
func (c *conn) Tick(time.Time) {
	now := c.s.dep.Clock()
	if !c.identified() {
		if now.Sub(c.born) > c.s.cfg.FirstMessage {
			c.end(fault.New(fault.HandshakeSlow))
		}
		return
	}
	p := c.who()
	r, revocable := c.s.dep.Auth.(auth.Revoker)
	switch {
	case !p.Expires.IsZero() && now.After(p.Expires):
		c.end(fault.New(fault.Expired))
	case revocable && r.Revoked(p):
		c.end(fault.New(fault.Unauthenticated))
	}
}
