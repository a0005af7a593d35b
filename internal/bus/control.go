package bus

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// cellsMaxBytes holds some 300,000 tenants.
const cellsMaxBytes = 64 << 20

// BootstrapControl creates the buckets of a control cluster that are missing: the cells of tenants, and the leases of
// gateways. It changes no bucket that exists, so the control cluster may be that of a cell. It waits within ctx for a cluster
// that is not ready.
func BootstrapControl(ctx context.Context, c *Conn, t Topology) error {
	cells := t.bucket(subject.BucketCells, "cells of tenants", 0, cellsMaxBytes)
	all := []jetstream.StreamConfig{cells, t.directory()}
	for _, want := range all {
		err := ensure(ctx, c, want.Name, func(ctx context.Context) error {
			_, err := c.js.CreateStream(ctx, want)
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				return nil
			}
			return err
		})
		if err != nil {
			return t.notSetUp(want.Name, all, err)
		}
	}
	return nil
}
