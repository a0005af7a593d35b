//go:build nightly && linux

package embedded

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

// A disk of its own, full and then not: the server takes messages again by itself and has lost none.
func TestAFullDiskIsNoEnd(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=160m"); err != nil {
		t.Skip("making a small disk needs root: ", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	srv, err := Open(Config{Port: -1, StoreDir: filepath.Join(dir, "nats")})
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	at := srv.ClientURL()
	c, err := bus.Connect(t.Context(), bus.Config{InProcess: srv, Trouble: srv.Trouble})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	_, err = c.JS().CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	require.NoError(t, err)
	publish := func() error {
		_, err := c.JS().Publish(t.Context(), "s", make([]byte, 100<<10))
		return err
	}
	require.NoError(t, publish())
	require.NoError(t, c.Trouble())

	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	require.NoError(t, err)
	for block := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(block)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	_ = f.Close()
	stored := 1
	for publish() == nil {
		stored++
	}
	require.ErrorContains(t, c.Trouble(), "streams S; make room")

	require.NoError(t, os.Remove(filler))
	ctx, cancel := context.WithTimeout(t.Context(), bustest.MaxWait)
	defer cancel()
	_, err = bus.Persist(ctx, c, "wait for the server", func(ctx context.Context) (*jetstream.PubAck, error) {
		return c.JS().Publish(ctx, "s", nil)
	})
	require.NoError(t, err)
	require.NoError(t, c.Trouble())
	require.Equal(t, at, srv.ClientURL())
	s, err := c.JS().Stream(ctx, "S")
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.CachedInfo().State.Msgs, uint64(stored+1))
}
