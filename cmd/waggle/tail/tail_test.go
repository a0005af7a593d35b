package tail

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestParse(t *testing.T) {
	session := func(tenant, entity string) Target {
		tn, err := id.ParseTenant(tenant)
		require.NoError(t, err)
		e, err := id.ParseEntity(entity)
		require.NoError(t, err)
		return Target{Log: subject.Log{Tenant: tn, Kind: id.KindSession, Entity: e}}
	}
	for _, c := range []struct {
		text, tenant string
		want         Target
	}{
		{"", "", Target{Subject: "live.>"}},
		{"", "acme", Target{Subject: "live.acme.>"}},
		{"live.>", "", Target{Subject: "live.>"}},
		{"live.*.session.*.tool.>", "", Target{Subject: "live.*.session.*.tool.>"}},
		{"session/abc", "", session("default", "abc")},
		{"session/abc", "acme", session("acme", "abc")},
	} {
		got, err := Parse(c.text, c.tenant)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got)
	}
	for _, c := range [][2]string{
		{"abc", ""},
		{"evt.>", ""},
		{"cmd.>", ""},
		{"session/", ""},
		{"session/a.b", ""},
		{"session/a/b", ""},
		{"planet/x", ""},
		{"session/x", "a.b"},
		{"", "*"},
		{"live.a b", ""},
		{"session/>", ""},
	} {
		_, err := Parse(c[0], c[1])
		require.Error(t, err, c)
	}
}

func TestLineShowsWhatMattersAndNothingElse(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.Local)
	l := Line(event.Event{
		Subject: "default.session.0199c3d2-41f0-7a53-8e0b-5d1c9a7e2f10", Type: event.ToolFailed, Sequence: 7, Time: at,
		Data: json.RawMessage(`{"tool":"workspace_read\u001b[2J_file","code":"TOOL_FAILED","message":"no\nfile","run_id":"r","arguments":{"a":1}}`),
	}, false)
	require.Equal(t, `12:00:00.123 session/0199c3d2-41f0-7a53-8e0b-5d1c9a7e2f10     7 tool.failed        workspace_read_file {"a":1} code=TOOL_FAILED no file`, l)
	l = Line(event.Event{
		Subject: "default.session.s", Type: event.RunFailed, Sequence: 8, Time: at,
		Data: json.RawMessage(`{"code":"MODEL_REFUSED","message":"m","provider":{"status":400,"code":"c","request_id":"r1","message":"` + strings.Repeat("why ", 100) + `"}}`),
	}, false)
	require.Contains(t, l, "provider_status=400 provider_code=c provider_request_id=r1 provider_said="+strings.Repeat("why ", 99))
	require.Contains(t, l, "code=MODEL_REFUSED m")
	require.NotContains(t, Line(event.Event{Subject: "\x1b[31mx", Type: "\x1b]0;y\a", Data: json.RawMessage("\x1b[1mz")}, false), "\x1b")
	require.Contains(t, Line(event.Event{Type: event.RunCompleted}, true), "\x1b[32m")
}

// fill appends n notices to a fresh log.
func fill(t *testing.T, store *eventlog.Store, log subject.Log, n int) {
	t.Helper()
	done := 0
	w := store.Writer(log, func(*eventlog.Entry) { done++ })
	require.NoError(t, w.Append(t.Context(), func() ([]event.Event, error) {
		var out []event.Event
		for i := done; i < n; i++ {
			e, err := event.New(log, fmt.Sprint("e", i), "test", time.Now(), event.NoticeData{Level: "info", Message: fmt.Sprint("notice ", i+1)})
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
		return out, nil
	}))
}

func testLog(t *testing.T, name string) subject.Log {
	t.Helper()
	l, err := subject.ParseName("default.session." + name)
	require.NoError(t, err)
	return l
}

func TestLogShowsHistoryAndThenWhatHappens(t *testing.T) {
	store, err := eventlog.New(bustest.Single(t), eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	log := testLog(t, "s1")
	var out bytes.Buffer
	for _, follow := range []bool{false, true} {
		require.ErrorContains(t, Log(t.Context(), store, log, Options{Out: &out, Follow: follow}), "no such session: s1 of tenant default")
	}
	fill(t, store, log, 3)

	require.NoError(t, Log(t.Context(), store, log, Options{Out: &out}))
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), "notice 3")

	out.Reset()
	require.NoError(t, Log(t.Context(), store, log, Options{Out: &out, JSON: true, After: eventlog.Cursor{Seq: 2}}))
	var e event.Event
	require.NoError(t, json.Unmarshal(out.Bytes(), &e), out.String())
	require.EqualValues(t, 3, e.Sequence)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := make(lineWriter, 16)
	ended := make(chan error, 1)
	go func() { ended <- Log(ctx, store, log, Options{Out: lines, Follow: true}) }()
	for i := 1; i <= 3; i++ {
		require.Contains(t, <-lines, fmt.Sprint("notice ", i))
	}
	fill(t, store, log, 4)
	require.Contains(t, <-lines, "notice 4")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestTheNewestEventOfEachLog(t *testing.T) {
	store, err := eventlog.New(bustest.Single(t), eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	fill(t, store, testLog(t, "s1"), 3)
	fill(t, store, testLog(t, "s2"), 2)
	var out bytes.Buffer
	require.NoError(t, Newest(t.Context(), store, id.DefaultTenant, Options{Out: &out}))
	require.Regexp(t, `(?s)^\S+ session/s1 .* notice 3\n\S+ session/s2 .* notice 2\n$`, out.String())
}

func TestAnnouncementsAreShownAsTheyCome(t *testing.T) {
	conn := bustest.Single(t)
	store, err := eventlog.New(conn, eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := make(lineWriter, 16)
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- Announcements(ctx, conn.NATS(), subject.LiveEverything, Options{Out: lines}, func() error {
			defer close(ready)
			return conn.NATS().Flush()
		})
	}()
	<-ready
	fill(t, store, testLog(t, "s1"), 1)
	require.Contains(t, <-lines, "notice 1")
	require.NoError(t, conn.NATS().Publish("live.default.session.s1.x", []byte("\x1b[2Jno event")))
	require.Contains(t, <-lines, "not an event: no event")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestAReaderThatLeavesEndsTheTail(t *testing.T) {
	store, err := eventlog.New(bustest.Single(t), eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	fill(t, store, testLog(t, "s1"), 2)
	r, w := io.Pipe()
	require.NoError(t, r.Close())
	require.ErrorIs(t, Log(t.Context(), store, testLog(t, "s1"), Options{Out: w, Follow: true}), errReading)
}

// lineWriter passes on each write, a single line.
type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}
