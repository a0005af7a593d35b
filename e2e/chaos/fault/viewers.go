package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/e2e/chaos/load"
	"github.com/waggle-dev/waggle/e2e/chaos/site"
)

const (
	// stalledViewers are viewers of one chat that read nothing, fifty for each client.
	stalledViewers = 500
	// stalledFor is longer than a gateway bears with a socket that accepts nothing: 30 s.
	stalledFor = 40 * time.Second
)

func viewers() []Fault {
	return []Fault{{Name: "500 viewers do not read", Strike: func(ctx context.Context, n *Injector) error {
		g := n.one(n.s.Gateways)
		c := n.load.Chats[0]
		conns := make([]*websocket.Conn, 0, stalledViewers)
		defer func() {
			for _, conn := range conns {
				_ = conn.CloseNow()
			}
		}()
		before, err := g.Metric(ctx, "waggle_gateway_closes_total")
		if err != nil {
			return err
		}
		for i := range stalledViewers {
			m := load.Dialects[i%len(load.Dialects)]
			conn, err := load.DialStalled(ctx, g.Addr, m.Path+c.Name(), site.KeyOf(c.Tenant))
			if err != nil {
				return fmt.Errorf("viewer %d: %w", i, err)
			}
			conns = append(conns, conn)
		}
		if err := n.hold(ctx, stalledFor); err != nil {
			return err
		}
		waiting, err := g.Metric(ctx, "waggle_gateway_queue_bytes")
		if err != nil {
			return err
		}
		closed, err := g.Metric(ctx, "waggle_gateway_closes_total")
		if err != nil {
			return err
		}
		if waiting == 0 && closed == before {
			return fmt.Errorf("%s has not noticed that %d viewers do not read", g.Name, stalledViewers)
		}
		n.note("%d viewers at %s read nothing for %v: %.0f bytes wait for them, %.0f sockets were closed", stalledViewers, g.Name, stalledFor, waiting, closed-before)
		return nil
	}}}
}
