package command_test

import (
	"bytes"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// waits receives every log line of Persist.
type waits chan string

func (w waits) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("waiting for")) {
		w <- string(line)
	}
	return len(line), nil
}

// TestComponentsStartThroughAnOutage: components that start while NATS restarts wait for it, and log that.
func TestComponentsStartThroughAnOutage(t *testing.T) {
	t.Parallel()
	server := bustest.Start(t, bus.DefaultTopology())
	steady, err := directory.Open(maxWait(t), bustest.Dial(t, server.URL))
	require.NoError(t, err)
	t.Cleanup(steady.Close)
	starts := map[string]func(*bus.Conn) error{
		"workers": func(c *bus.Conn) error {
			w := command.NewWorkers(c, command.WorkersConfig{Service: cmd.Worker}, newRecorder(nil).handle)
			t.Cleanup(w.Stop)
			return w.Start(maxWait(t))
		},
		"ordered": func(c *bus.Conn) error {
			o := command.NewOrdered(c, steady, command.OrderedConfig{Service: cmd.Session, Instance: id.MustName("a")}, newRecorder(nil).handle)
			t.Cleanup(o.Stop)
			return o.Start(maxWait(t))
		},
		"timers": func(c *bus.Conn) error {
			timers := command.NewTimers(c, cmd.Session, log(t), nil)
			t.Cleanup(timers.Stop)
			return timers.Start(maxWait(t))
		},
		"directory": func(c *bus.Conn) error {
			d, err := directory.Open(maxWait(t), c)
			if err == nil {
				t.Cleanup(d.Close)
			}
			return err
		},
		"bucket":        func(c *bus.Conn) error { _, err := c.Bucket(maxWait(t), subject.BucketAcks); return err },
		"subscriptions": func(c *bus.Conn) error { return c.Flush(maxWait(t)) },
	}
	said := map[string]waits{}
	conns := map[string]*bus.Conn{}
	for name := range starts {
		said[name] = make(waits, 100)
		c, err := bus.Connect(maxWait(t), bus.Config{URL: server.URL, Name: name, Logger: zerolog.New(said[name])})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		conns[name] = c
	}
	server.Stop()
	done := map[string]chan error{}
	for name, start := range starts {
		ended := make(chan error, 1)
		done[name] = ended
		go func() { ended <- start(conns[name]) }()
	}
	for name := range starts {
		select {
		case <-said[name]:
		case err := <-done[name]:
			require.FailNow(t, "it did not wait", "%s: %v", name, err)
		case <-maxWait(t).Done():
			require.FailNow(t, "it says nothing", name)
		}
	}
	server.Start()
	for name := range starts {
		require.NoError(t, <-done[name], name)
	}
}
