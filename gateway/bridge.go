package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/gateway/forward"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// bridged returns the binding for a socket without credentials in its handshake.
func (c *conn) bridged(r *http.Request) {
	c.bridge = &bridge{Binding: c.binding, c: c, from: forward.OriginOf(r), room: make(chan struct{}, 1)}
	c.binding = c.bridge
}

// home counts a client that has authenticated among those of its tenant, or notes that another cell serves the tenant.
func (c *conn) home(p auth.Principal, token string) error {
	s := c.s
	if s.cells == nil {
		return nil
	}
	to, here, err := s.cells.Aim(p.Tenant, c.bridge == nil) // homed has forwarded all others that had credentials
	switch {
	case err != nil:
		return err
	case !here:
		c.bridge.to, c.bridge.token = to, token
		return nil
	}
	leave, err := s.cells.Enter(p.Tenant)
	if err == nil {
		c.pass.Add(leave)
	}
	return err
}

// Begin implements binding.Binding.
func (b *bridge) Begin() error {
	if b.to.IsZero() {
		return b.Binding.Begin()
	}
	far, err := b.c.s.cells.Dial(b.c.ctx, b.from, b.to, b.token)
	b.token = ""
	if err != nil {
		return err
	}
	b.far = far
	b.abroad.Store(true)
	if !b.c.s.conns.async(b.carry) {
		_ = far.CloseNow()
		return fault.New(fault.Draining)
	}
	b.c.TakeUp(func() {})
	return nil
}

// carry brings the messages of the other cell to the client until one of both sockets ends.
func (b *bridge) carry() {
	defer func() { _ = b.far.CloseNow() }()
	for {
		_, message, err := b.far.Read(b.c.ctx)
		if err != nil {
			b.over(err)
			return
		}
		for m := transport.Text(message); b.c.Send(m) == 0; {
			select {
			case <-b.room:
			case <-b.c.Done():
				return
			}
		}
	}
}

// over ends the socket as the other cell has ended its own.
func (b *bridge) over(err error) {
	if ended, ok := errors.AsType[websocket.CloseError](err); ok {
		b.c.Finish(int(ended.Code), ended.Reason)
		return
	}
	b.c.End(fault.New(fault.CellUnavailable).Wrap(err))
}

// Handle implements binding.Binding.
func (b *bridge) Handle(ctx context.Context, message []byte) error {
	if !b.abroad.Load() {
		return b.Binding.Handle(ctx, message)
	}
	return b.far.Write(ctx, websocket.MessageText, message)
}

// Settle implements binding.Binding.
func (b *bridge) Settle() {
	if b.to.IsZero() {
		b.Binding.Settle()
	}
}

// Heartbeat implements binding.Binding: the other cell answers.
func (b *bridge) Heartbeat(message []byte) bool {
	return !b.abroad.Load() && b.Binding.Heartbeat(message)
}

// Unmetered implements binding.Binding.
func (b *bridge) Unmetered(ctx context.Context, message []byte) bool {
	return !b.abroad.Load() && b.Binding.Unmetered(ctx, message)
}

// Oversized implements binding.Binding.
func (b *bridge) Oversized(ctx context.Context, o *ws.Oversize) error {
	if !b.abroad.Load() {
		return b.Binding.Oversized(ctx, o)
	}
	b.c.End(o.Fault())
	return o.Fault()
}

// Room implements binding.Binding.
func (b *bridge) Room() {
	if !b.abroad.Load() {
		b.Binding.Room()
		return
	}
	select {
	case b.room <- struct{}{}:
	default:
	}
}

// Tick implements binding.Binding.
func (b *bridge) Tick(now time.Time) {
	if !b.abroad.Load() {
		b.Binding.Tick(now)
	}
}

// Pong implements binding.Binding.
func (b *bridge) Pong(payload []byte) {
	if !b.abroad.Load() {
		b.Binding.Pong(payload)
	}
}

// Flush implements binding.Binding.
func (b *bridge) Flush(ctx context.Context) {
	if !b.abroad.Load() {
		b.Binding.Flush(ctx)
	}
}

// Close implements binding.Binding.
func (b *bridge) Close() {
	b.Binding.Close()
	if b.abroad.Load() {
		_ = b.far.CloseNow()
	}
}
