package acks_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/acks"
)

// TestTheHighestAckCounts: many replicas note positions of one client at once, in any
// order; the highest stays.
func TestTheHighestAckCounts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := bustest.Single(t)
	a, err := acks.Open(ctx, c)
	require.NoError(t, err)
	log, client := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}, id.EntityFromExternal("phone")
	var all sync.WaitGroup
	for from := range uint64(4) {
		all.Go(func() {
			for seq := 40 - from; seq > 0 && seq <= 40; seq -= 4 {
				if err := a.Put(ctx, log, client, seq); err != nil {
					t.Error(err)
				}
				if err := a.Put(ctx, log, client, 41-seq); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, err := a.Get(ctx, log, client)
	require.NoError(t, err)
	require.EqualValues(t, 40, got)
	got, err = a.Get(ctx, log, id.EntityFromExternal("other"))
	require.NoError(t, err)
	require.Zero(t, got)

	require.NoError(t, c.JS().DeleteKeyValue(ctx, subject.BucketAcks))
	_, err = acks.Open(ctx, c)
	require.ErrorContains(t, err, subject.BucketAcks)
}
