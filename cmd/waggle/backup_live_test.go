package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/backup"
	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/bus/embedded"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// A backup is taken while sessions, tasks and a team work, and restored into an empty server. Each
// log in it is without hole or double, and a client that resumes gets exactly the rest.
func TestABackupUnderLoadIsPutBack(t *testing.T) {
	t.Parallel()
	i := start(t)
	bring(t, i.dir)
	out, err := i.run(t, `echo y | waggle teams run -f `+example+` "ask Analyst which files are in the workspace"`)
	require.NoError(t, err, out)
	out, err = i.run(t, `waggle chat "What is 6 * 7?"`)
	require.NoError(t, err, out)

	stop, rounds := busy(t, i)
	require.Eventually(t, func() bool { return rounds.Load() >= 2 }, maxWait, 10*time.Millisecond)
	out, err = i.run(t, "waggle backup --out copy")
	require.NoError(t, err, out)
	during := rounds.Load()
	stop()
	t.Logf("%d rounds of load before the end of the backup; it says:\n%s", during, out)
	copied := filepath.Join(i.dir, "copy")
	m, err := backup.Load(copied)
	require.NoError(t, err)
	require.Len(t, m.Streams, len(backup.Names(subject.DefaultPartitions)))
	out, err = i.run(t, "waggle restore --from copy")
	require.Error(t, err, "the installation has streams")
	require.Contains(t, out, "not empty")

	fresh, conn := bare(t)
	out, err = i.run(t, "waggle restore --from copy --nats "+fresh)
	require.NoError(t, err, out)
	logs := dense(t, conn)
	events := same(t, conn, m)
	require.Greater(t, logs["session"], 1)
	require.Positive(t, logs["task"])
	require.GreaterOrEqual(t, logs["team"], 1)
	t.Logf("restored %d events in %v", events, logs)

	session, last := aSession(t, conn)
	i2 := again(t, fresh)
	for _, after := range []uint64{0, last / 2, last - 1} {
		require.Equal(t, span(after+1, last), i2.resume(t, session, after, last), "after %d", after)
	}
	out, err = i2.run(t, `waggle chat --session `+session+` "What is 6 * 7?"`)
	require.NoError(t, err, out)
	require.Contains(t, out, "42")
	dense(t, conn)
}

// busy asks, gives tasks and has a team work until it is stopped.
func busy(t *testing.T, i *installation) (stop func(), rounds *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	rounds = &atomic.Int64{}
	var work sync.WaitGroup
	for _, line := range []string{`waggle chat "What is 6 * 7?"`, `waggle tasks create --agent assistant "compute 6*7"`, `waggle chat "What is 7 * 7?"`} {
		work.Go(func() {
			for ctx.Err() == nil {
				if out, err := i.run(t, line); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v\n%s", line, err, out)
					return
				}
				rounds.Add(1)
			}
		})
	}
	return func() { cancel(); work.Wait() }, rounds
}

// bare starts a NATS server without streams.
func bare(t *testing.T) (string, *bus.Conn) {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{Name: "fresh", Port: -1, StoreDir: bustest.Store(t), Sync: bustest.SyncEvery})
	require.NoError(t, err)
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	conn, err := bus.Connect(t.Context(), bus.Config{URL: srv.ClientURL(), Name: t.Name()})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return srv.ClientURL(), conn
}

// again runs all roles against a server that is there.
func again(t *testing.T, url string, args ...string) *installation {
	t.Helper()
	i := &installation{dir: bustest.Store(t), nats: url, ended: make(chan error, 1), errors: &output{}}
	i.cmd = exec.Command("waggle", append([]string{"serve", "--role", strings.Join(config.Roles, ","), "--nats", url, "--addr", "127.0.0.1:0"}, args...)...)
	i.cmd.Dir, i.cmd.Stderr, i.cmd.Env = i.dir, i.errors, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + i.dir, "GORACE=" + race, "WAGGLE_SIGNING_KEY_FILE=" + keys.SigningFile(i.dir)}
	_, err := keys.EnsureSigning(i.dir)
	require.NoError(t, err)
	out, err := i.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, i.cmd.Start())
	t.Cleanup(func() { i.end(t, syscall.SIGKILL) })
	where := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := chatLine.FindStringSubmatch(lines.Text()); m != nil {
				where <- lines.Text()
			}
		}
		i.ended <- i.cmd.Wait()
	}()
	select {
	case text := <-where:
		i.ws, i.addr = chatLine.FindStringSubmatch(text)[1], chatLine.FindStringSubmatch(text)[2]
	case <-time.After(maxWait):
		require.Fail(t, "it does not say where it is", i.errors.String())
	}
	return i
}

// each calls f with every event in the logs.
func each(t *testing.T, conn *bus.Conn, f func(subj string, stream uint64, seq uint64)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	for _, p := range subject.DefaultPartitions.All() {
		s, err := conn.JS().Stream(ctx, p.EventStream())
		require.NoError(t, err)
		state := s.CachedInfo().State
		if state.Msgs == 0 {
			continue
		}
		c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
		require.NoError(t, err)
		for n := uint64(0); n < state.Msgs; n++ {
			m, err := c.Next(jetstream.FetchMaxWait(maxWait))
			require.NoError(t, err)
			meta, err := m.Metadata()
			require.NoError(t, err)
			seq, err := strconv.ParseUint(m.Headers().Get(event.HeaderSeq), 10, 64)
			require.NoError(t, err)
			f(m.Subject(), meta.Sequence.Stream, seq)
		}
	}
}

// dense fails the test unless every log is 1, 2, 3, ...; it returns the number of logs of each
// kind.
func dense(t *testing.T, conn *bus.Conn) map[string]int {
	t.Helper()
	ends, kinds := map[string]uint64{}, map[string]int{}
	each(t, conn, func(subj string, _, seq uint64) {
		require.Equal(t, ends[subj]+1, seq, subj)
		ends[subj] = seq
	})
	for subj := range ends {
		log, err := subject.DefaultPartitions.ParseEvent(subj)
		require.NoError(t, err)
		kinds[string(log.Kind)]++
	}
	return kinds
}

// same fails the test unless the event streams reach as far as the manifest says.
func same(t *testing.T, conn *bus.Conn, m *backup.Manifest) (events uint64) {
	t.Helper()
	for _, s := range m.Streams {
		if !strings.HasPrefix(s.Name, "EVT_") {
			continue
		}
		have, err := conn.JS().Stream(t.Context(), s.Name)
		require.NoError(t, err)
		require.GreaterOrEqual(t, have.CachedInfo().State.LastSeq, s.LastSeq, s.Name)
		require.GreaterOrEqual(t, have.CachedInfo().State.Msgs, s.Messages, s.Name)
		events += have.CachedInfo().State.Msgs
	}
	return events
}

// aSession returns a session of the backup and where its log ends. The question of the
// first one was answered before the backup began.
func aSession(t *testing.T, conn *bus.Conn) (string, uint64) {
	t.Helper()
	var first string
	var began uint64
	ends := map[string]uint64{}
	each(t, conn, func(subj string, stream, seq uint64) {
		log, err := subject.DefaultPartitions.ParseEvent(subj)
		require.NoError(t, err)
		if log.Kind == "session" && seq == 1 && (first == "" || stream < began) && !strings.Contains(subj, "task") {
			first, began = subj, stream
		}
		ends[subj] = seq
	})
	log, err := subject.DefaultPartitions.ParseEvent(first)
	require.NoError(t, err)
	return log.Entity.String(), ends[first]
}

func span(from, to uint64) []uint64 {
	var out []uint64
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

// resume reads the session after a sequence as a client of the session protocol does,
// which has a frame for every event, and returns the sequences of what comes up to last.
func (i *installation) resume(t *testing.T, session string, after, last uint64) (got []uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	url := fmt.Sprintf("ws://%s/ws/session?deltas=all&watch=session/%s&after=%d", i.addr, session, after)
	c, _, err := websocket.Dial(ctx, url, nil) //nolint:bodyclose // the connection is closed
	require.NoError(t, err)
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(-1)
	for after < last {
		_, raw, err := c.Read(ctx)
		require.NoError(t, err)
		var f struct {
			Seq uint64 `json:"seq"`
		}
		require.NoError(t, json.Unmarshal(raw, &f))
		if f.Seq > after {
			got = append(got, f.Seq)
			after = f.Seq
		}
	}
	return got
}

// A backup with a changed byte is refused before anything is touched.
func TestADamagedBackupIsRefused(t *testing.T) {
	t.Parallel()
	_, source := bare(t)
	require.NoError(t, bus.Bootstrap(t.Context(), source, bus.DefaultTopology()))
	for n := range 50 {
		_, err := source.JS().Publish(t.Context(), "evt.03.default.session.x", fmt.Appendf(nil, "%d %s", n, strings.Repeat("x", 1000)))
		require.NoError(t, err)
	}
	dir := filepath.Join(t.TempDir(), "copy")
	m, err := backup.Save(t.Context(), source, dir, "test", func(backup.Stream) {})
	require.NoError(t, err)
	_, err = backup.Save(t.Context(), source, dir, "test", func(backup.Stream) {})
	require.ErrorContains(t, err, "not empty")
	_, target := bare(t)
	opt := backup.RestoreOptions{Topology: bus.DefaultTopology(), Done: func(backup.Stream) {}}

	file := filepath.Join(dir, "EVT_03.snapshot")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	text[len(text)/2] ^= 1
	require.NoError(t, os.WriteFile(file, text, 0o600))
	_, err = backup.Restore(t.Context(), target, dir, opt)
	require.ErrorContains(t, err, "EVT_03.snapshot is damaged")
	_, err = target.JS().Stream(t.Context(), "CMD")
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)

	text[len(text)/2] ^= 1
	require.NoError(t, os.WriteFile(file, text, 0o600))
	opt.Topology.EventMaxAge = time.Hour
	_, err = backup.Restore(t.Context(), target, dir, opt)
	require.NoError(t, err)
	_, err = backup.Restore(t.Context(), target, dir, opt)
	require.ErrorIs(t, err, backup.ErrNotEmpty)
	opt.Force = true
	_, err = backup.Restore(t.Context(), target, dir, opt)
	require.NoError(t, err)
	drift, err := bus.Verify(t.Context(), target, opt.Topology)
	require.NoError(t, err)
	require.Empty(t, drift)
	back, err := target.JS().Stream(t.Context(), "EVT_03")
	require.NoError(t, err)
	require.EqualValues(t, 50, back.CachedInfo().State.LastSeq)

	require.NoError(t, os.Remove(filepath.Join(dir, "manifest.json")))
	_, err = backup.Load(dir)
	require.ErrorContains(t, err, "it is not a backup, or an incomplete one")
	require.Len(t, m.Streams, len(backup.Names(subject.DefaultPartitions)))
}
