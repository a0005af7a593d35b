package single

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// full is a connection whose queue takes nothing before it has been emptied.
type full struct {
	client
	t       *testing.T
	refuses func()
	emptied bool
	sent    []string
}

func (f *full) Context() context.Context { return f.t.Context() }
func (f *full) Slot() *stream.Slot       { return stream.NewSlot() }

func (f *full) Send(ms ...*transport.Message) int {
	if !f.emptied {
		f.refuses()
		return 0
	}
	for _, m := range ms {
		f.sent = append(f.sent, string(m.Data))
	}
	return len(ms)
}

// silent is the binding and the codec of a log that is empty.
type silent struct {
	stream.Binding
	stream.Codec
}

func (silent) Name() string                { return "silent" }
func (silent) Seen(*stream.Stream)         {}
func (silent) Encode(event.Event) [][]byte { return nil }

// TestRoomDuringTheOpening: a queue that is full of the opening may drain before the log is shown. The rest of the opening follows.
func TestRoomDuringTheOpening(t *testing.T) {
	log, err := eventlog.New(bustest.Single(t), eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(log.Close)
	c := &full{t: t}
	g := &binding.Gateway{Edge: &edge.Edge{Streams: &stream.Source{Log: log, Logger: zerolog.Nop(), Clock: time.Now, Lagged: func(stream.Reason) {}}}}
	v := NewViewer(g, c, nil)
	v.Log = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s")}
	c.refuses = func() { require.NotNil(t, v.shown(), "the writer's call of Room would find nothing to resume") }
	v.Show(silent{}, silent{}, eventlog.Cursor{}, func(o *stream.Opening) {
		for _, text := range []string{"one", "two"} {
			o.Say(func() []byte { return []byte(text) })
		}
	})
	t.Cleanup(v.Close)
	require.Empty(t, c.sent)
	c.emptied = true
	v.Room()
	require.Equal(t, []string{"one", "two"}, c.sent)
}
