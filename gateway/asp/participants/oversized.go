package participants

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
)

// Oversized handles a frame that is larger than one may be, of which the ends are there.
func (p *Participant) Oversized(ctx context.Context, o *ws.Oversize) error {
	p.busy(true)
	defer p.busy(false)
	if err := p.rate.Wait(ctx); err != nil {
		return err // the gateway stops
	}
	who := p.registered()
	p.g.Metrics.Oversized.WithLabelValues(who.Kind).Inc()
	p.g.Logger.Warn().Int64("size", o.Size).Int64("limit", o.Limit).Str("kind", who.Kind).Str("participant", who.ID).
		Str("connection", p.id.String()).Msg("oversized frame skipped")
	orders, requestID, err := p.codec.Oversized(asp.Torn{Head: o.Head, Tail: o.Tail, Size: o.Size, Limit: o.Limit}, p.inbound())
	return p.obey(ctx, orders, requestID, err)
}
