package bus_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// bare returns connections to a server without streams.
func bare(t *testing.T, n int) []*bus.Conn {
	url, out := bustest.Bare(t), make([]*bus.Conn, n)
	for i := range out {
		out[i] = bustest.Dial(t, url)
	}
	return out
}

func drift(t *testing.T, c *bus.Conn) []bus.Drift {
	d, err := bus.Verify(maxWait(t), c, bus.DefaultTopology())
	require.NoError(t, err)
	return d
}

func TestManyProcessesMayBootstrapAtOnce(t *testing.T) {
	t.Parallel()
	conns := bare(t, 6)
	missing := drift(t, conns[0])
	require.Len(t, missing, int(subject.DefaultPartitions)+19, "shards, five streams, five of timers, four buckets, five of quotas")
	require.Equal(t, "stream EVT_00: stream is missing, should be present", missing[0].String())
	errs := make([]error, len(conns))
	var all sync.WaitGroup
	for i, c := range conns {
		all.Go(func() { errs[i] = bus.Bootstrap(maxWait(t), c, bus.DefaultTopology()) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Empty(t, drift(t, conns[0]))
	require.NoError(t, bus.Bootstrap(maxWait(t), conns[0], bus.DefaultTopology()))
}

// A store that is too small says which settings ask for more than it has.
func TestAStoreWithoutRoomNamesTheSettings(t *testing.T) {
	t.Parallel()
	top := bus.DefaultTopology()
	top.AuditMaxBytes = 1 << 50
	err := bus.Bootstrap(maxWait(t), bare(t, 1)[0], top)
	require.ErrorContains(t, err, "has no room for stream AUDIT: it reserves 1073741824 MiB")
	require.ErrorContains(t, err, "lower audit.max_bytes (1073741824 MiB)")
	require.NotContains(t, err.Error(), "event_max_bytes", "it reserves nothing")
	top.AuditMaxBytes, top.EventMaxBytes = bus.DefaultAuditMaxBytes, 1<<50
	require.ErrorContains(t, bus.Bootstrap(maxWait(t), bare(t, 1)[0], top), "nats.event_max_bytes (1073741824 MiB in each of 16 streams)")
}

// A second bootstrap touches neither stored messages nor a stream that is right.
func TestBootstrapKeepsWhatIsStored(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	for n := range 5 {
		_, err := c.JS().Publish(maxWait(t), "evt.03.default.session.x", fmt.Append(nil, n))
		require.NoError(t, err)
	}
	before := stream(t, c, "EVT_03")
	top := bus.DefaultTopology()
	top.EventMaxAge = time.Hour
	require.NoError(t, bus.Bootstrap(maxWait(t), c, top))
	after := stream(t, c, "EVT_03")
	require.Equal(t, before.Created, after.Created)
	require.EqualValues(t, 5, after.State.Msgs)
	require.Equal(t, time.Hour, after.Config.MaxAge)
}

func stream(t *testing.T, c *bus.Conn, name string) *jetstream.StreamInfo {
	s, err := c.JS().Stream(maxWait(t), name)
	require.NoError(t, err)
	return s.CachedInfo()
}

func TestDriftIsNamedAndMended(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	for field, change := range map[string]struct {
		stream string
		f      func(*jetstream.StreamConfig)
	}{
		"max_age":                   {"EVT_03", func(s *jetstream.StreamConfig) { s.MaxAge = time.Hour }},
		"max_bytes":                 {"EVT_03", func(s *jetstream.StreamConfig) { s.MaxBytes = 1 << 20 }},
		"max_msgs":                  {"EVT_03", func(s *jetstream.StreamConfig) { s.MaxMsgs = 10 }},
		"max_msg_size":              {"EVT_03", func(s *jetstream.StreamConfig) { s.MaxMsgSize = 10 }},
		"max_msgs_per_subject":      {"EVT_03", func(s *jetstream.StreamConfig) { s.MaxMsgsPerSubject = 10 }},
		"duplicate_window":          {"CMD", func(s *jetstream.StreamConfig) { s.Duplicates = time.Second }},
		"discard":                   {"CMD", func(s *jetstream.StreamConfig) { s.Discard = jetstream.DiscardOld }},
		"allow_direct":              {"EVT_03", func(s *jetstream.StreamConfig) { s.AllowDirect = false }},
		"allow_rollup_hdrs":         {"EVT_03", func(s *jetstream.StreamConfig) { s.AllowRollup = true }},
		"no_ack":                    {"DEAD", func(s *jetstream.StreamConfig) { s.NoAck = true }},
		"republish":                 {"EVT_03", func(s *jetstream.StreamConfig) { s.RePublish = &jetstream.RePublish{Destination: "x.>"} }},
		"subject_delete_marker_ttl": {"KV_quota_sessions", func(s *jetstream.StreamConfig) { s.SubjectDeleteMarkerTTL = 2 * time.Hour }},
	} {
		cfg := stream(t, c, change.stream).Config
		change.f(&cfg)
		_, err := c.JS().UpdateStream(maxWait(t), cfg)
		require.NoError(t, err, field)
		got := drift(t, c)
		require.Len(t, got, 1, "%s: %v", field, got)
		require.Equal(t, change.stream+" "+field, got[0].Stream+" "+got[0].Field)
		require.NotEqual(t, got[0].Want, got[0].Have)
		require.True(t, got[0].Fixed)
		require.NoError(t, bus.Bootstrap(maxWait(t), c, bus.DefaultTopology()), field)
		require.Empty(t, drift(t, c), field)
	}
}

// A stream of an earlier version is not compressed. Processes of this version start all the same, and Bootstrap mends it.
func TestCompressionIsMendedAndDelaysNoStart(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	for _, name := range []string{"EVT_03", "AUDIT"} {
		cfg := stream(t, c, name).Config
		require.Equal(t, jetstream.S2Compression, cfg.Compression)
		cfg.Compression = jetstream.NoCompression
		_, err := c.JS().UpdateStream(maxWait(t), cfg)
		require.NoError(t, err)
	}
	require.Empty(t, drift(t, c))
	require.NoError(t, bus.Await(maxWait(t), c, bus.DefaultTopology()))
	require.NoError(t, bus.Bootstrap(maxWait(t), c, bus.DefaultTopology()))
	require.Equal(t, jetstream.S2Compression, stream(t, c, "EVT_03").Config.Compression)
	require.Equal(t, jetstream.NoCompression, stream(t, c, "AUDIT").Config.Compression, "the operator decides on the audit log")
}

func TestWhatCannotBeMendedIsRefused(t *testing.T) {
	t.Parallel()
	for says, wrong := range map[string]jetstream.StreamConfig{
		"stream EVT_03: subjects is evt.03.x.>":    {Name: "EVT_03", Subjects: []string{"evt.03.x.>"}},
		"stream CMD: retention is Limits":          {Name: "CMD", Subjects: []string{"cmd.>"}},
		"stream DEAD: storage is Memory":           {Name: "DEAD", Subjects: []string{"dead.>"}, Storage: jetstream.MemoryStorage},
		"stream KV_acks: deny_purge is true":       {Name: "KV_acks", Subjects: []string{"$KV.acks.>"}, DenyPurge: true},
		"stream DEAD: allow_msg_schedules is true": {Name: "DEAD", Subjects: []string{"dead.>"}, AllowMsgSchedules: true},
		"stream KV_directory: storage is Memory":   {Name: "KV_directory", Subjects: []string{"$KV.directory.>"}, Storage: jetstream.MemoryStorage, MaxMsgsPerSubject: 1, AllowRollup: true, AllowDirect: true},
		"subjects overlap with an existing stream": {Name: "OTHER", Subjects: []string{"evt.>"}},
	} {
		c := bare(t, 1)[0]
		_, err := c.JS().CreateStream(maxWait(t), wrong)
		require.NoError(t, err)
		require.ErrorContains(t, bus.Bootstrap(maxWait(t), c, bus.DefaultTopology()), says)
		require.NotEmpty(t, drift(t, c))
	}
}

func TestBootstrapWaitsForAServerAndNotForEver(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, in.URL)
	s := watch(t, c)
	in.Stop()
	require.False(t, <-s.ch)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.Error(t, bus.Bootstrap(short, c, bus.DefaultTopology()))
	done := make(chan error)
	go func() { done <- bus.Bootstrap(maxWait(t), c, bus.DefaultTopology()) }()
	in.Start()
	require.NoError(t, <-done)

	top := bus.DefaultTopology()
	top.Replicas = 3
	require.ErrorContains(t, bus.Bootstrap(maxWait(t), c, top), "replicas > 1 not supported")
}
