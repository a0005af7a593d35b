package bus

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/embedded"
)

// A feed waits for a reader that is slower than the server.
func TestAFeedWaitsForItsReader(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), Port: -1})
	require.NoError(t, err)
	defer srv.Shutdown()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Connect(ctx, Config{URL: srv.ClientURL(), Name: t.Name()})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.JS().CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	const all = 10 * feedWaiting
	for i := range all {
		_, err := c.JS().Publish(ctx, "s."+strconv.Itoa(i), nil)
		require.NoError(t, err)
	}
	const beat = 200 * time.Millisecond
	f, err := c.feed(ctx, "S", beat, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy}, []string{"s.>"})
	require.NoError(t, err)
	defer f.Stop()
	select {
	case <-f.Over():
		t.Fatal("the feed ended while its reader did something else")
	case <-time.After(2 * feedSilence * beat): // nothing happens meanwhile
	}
	for n := uint64(1); n <= all; n++ {
		select {
		case m := <-f.Updates():
			require.Equal(t, n, m.Sequence)
		case <-f.Over():
			t.Fatalf("the feed ended behind %d messages", n-1)
		}
	}
}
