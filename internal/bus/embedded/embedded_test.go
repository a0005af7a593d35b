package embedded

import (
	"net"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
)

func TestAnEmbeddedServerNeedsNoPort(t *testing.T) {
	t.Parallel()
	srv, err := Start(Config{StoreDir: t.TempDir(), Sync: "always"})
	require.NoError(t, err)
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	require.Nil(t, srv.Addr())
	c, err := bus.Connect(t.Context(), bus.Config{InProcess: srv})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, bus.Bootstrap(t.Context(), c, bus.DefaultTopology()))
	_, err = c.JS().Publish(t.Context(), "cmd.a.00.b.c.d", nil)
	require.NoError(t, err)
}

// lines collects log lines.
type lines struct {
	mu sync.Mutex
	by map[zerolog.Level]int
}

func (l *lines) Run(_ *zerolog.Event, level zerolog.Level, _ string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by[level]++
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	require.True(t, ok)
	for _, c := range []struct {
		says string
		cfg  Config
	}{
		{"address already in use", Config{Port: addr.Port, StoreDir: t.TempDir()}},
		{"needs a folder", Config{Port: -1}},
		{"sync must be", Config{Port: -1, StoreDir: t.TempDir(), Sync: "sometimes"}},
		{"sync must be", Config{Port: -1, StoreDir: t.TempDir(), Sync: "-1s"}},
		{"/dev/null", Config{Port: -1, StoreDir: "/dev/null/x"}},
	} {
		heard := &lines{by: map[zerolog.Level]int{}}
		c.cfg.Logger = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.ErrorLevel).Hook(heard)
		_, err := Start(c.cfg)
		require.ErrorContains(t, err, c.says)
	}
}
