package acks_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
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

// TestPositionsOfManyClients: 70 MiB of later positions displace none, and displace only the oldest where events have a bound.
func TestPositionsOfManyClients(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]int64{"events without a bound": 0, "events with a bound": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := bus.DefaultTopology()
			top.EventMaxBytes = events
			c := bustest.Dial(t, bustest.Start(t, top).URL)
			a, err := acks.Open(t.Context(), c)
			require.NoError(t, err)
			log, first, last := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}, id.EntityFromExternal("first"), id.EntityFromExternal("last")
			require.NoError(t, a.Put(t.Context(), log, first, 1))
			bustest.Fill(t, c, 70<<20, func(i int) string {
				return subject.BucketSubject(subject.BucketAcks, subject.AckKey(log, id.EntityFromExternal(fmt.Sprint(i))))
			})
			require.NoError(t, a.Put(t.Context(), log, last, 2))
			got, err := a.Get(t.Context(), log, last)
			require.NoError(t, err)
			require.EqualValues(t, 2, got)
			got, err = a.Get(t.Context(), log, first)
			require.NoError(t, err)
			require.Equal(t, events == 0, got == 1)
		})
	}
}
