package session_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/eventlog"
	record "github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/session"
	"github.com/waggle-dev/waggle/services/snapshots"
)

// messages returns how many messages of a stream match the filter.
func (r *rig) messages(stream, filter string) (n uint64) {
	r.T.Helper()
	s, err := r.Conn.JS().Stream(r.Ctx, stream)
	require.NoError(r.T, err)
	info, err := s.Info(r.Ctx, jetstream.WithSubjectFilter(filter))
	require.NoError(r.T, err)
	for _, count := range info.State.Subjects {
		n += count
	}
	return n
}

// holdings counts the keys of the quota on sessions.
func (r *rig) holdings() (n uint64) {
	r.T.Helper()
	kv, err := r.Conn.Bucket(r.Ctx, subject.QuotaBucket(record.Sessions))
	require.NoError(r.T, err)
	keys, err := kv.ListKeys(r.Ctx)
	require.NoError(r.T, err)
	for range keys.Keys() {
		n++
	}
	return n
}

// remains returns what is stored of a session, by stream.
func (r *rig) remains(l subject.Log) map[string]uint64 {
	r.T.Helper()
	out := map[string]uint64{"events": r.messages(subject.DefaultPartitions.Stream(l), subject.DefaultPartitions.Event(l))}
	out["acks"] = r.messages(subject.BucketStream(subject.BucketAcks), subject.BucketSubject(subject.BucketAcks, subject.AckKeysOf(l)))
	for _, s := range []id.Name{cmd.Session, cmd.Pipeline} {
		out["timers"] += r.messages(subject.TimerStream(s), subject.TimersFor(s, l.Tenant, l.Entity))
		out["dead"] += r.messages(subject.StreamDead, subject.DeadFor(s, l.Tenant, l.Entity))
	}
	out["quota"] = r.holdings()
	out["index"] = r.messages(subject.StreamIndex, l.Index())
	if kv, err := r.Conn.JS().KeyValue(r.Ctx, subject.BucketFolds); err == nil {
		if _, err = kv.Get(r.Ctx, subject.FoldKey(l)); err == nil {
			out["snapshot"] = 1
		}
	}
	return out
}

// busy begins a session that has left something everywhere.
func (r *rig) busy(l subject.Log) {
	r.T.Helper()
	r.open(l, event.Preferences{})
	r.command(l, cmd.Pipeline, cmd.SendMessage, "m1", cmd.UserMessage{Content: "what is the secret?"})
	r.Until(l, event.RunStarted, 1)
	r.command(l, cmd.Session, cmd.Ack, "ack", cmd.AckEvents{ClientID: "phone", Seq: 2})
	r.command(l, cmd.Pipeline, id.MustName("nonsense"), "dead", map[string]string{"secret": "in a dead letter"})
	require.Eventually(r.T, func() bool {
		left := r.remains(l)
		return left["acks"] == 1 && left["timers"] >= 1 && left["dead"] == 1 && left["index"] == 1
	}, maxWait, 5*time.Millisecond)
}

// A deleted session keeps its tombstone only. Its tenant gets SESSION_DELETED, other tenants
// SESSION_NOT_FOUND.
func TestADeletedSessionLeavesItsTombstone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	book, err := audit.New(r.Conn, audit.Options{CloseMaxWait: time.Hour, Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(book.Close)
	r.start("a", session.Config{StateKeys: keys, Audit: book})
	r.startPipeline("p")
	w := r.serveAPI()
	other := sessionLog("other")
	r.busy(log)
	r.busy(other)
	state, err := r.export(cmd.ExportRequest{})
	require.NoError(t, err)

	for who, want := range map[string]int{"vera": 403, "eve": 404, "mallory": 401} {
		status, body := w.ask(who, "DELETE", "/api/v1/sessions/s1")
		require.Equal(t, want, status, who+body)
	}
	status, body := w.ask("alice", "DELETE", "/api/v1/sessions/s1")
	require.Equal(t, http.StatusNoContent, status, body)
	require.Empty(t, body)
	require.Equal(t, map[string]uint64{"events": 1, "acks": 0, "timers": 0, "dead": 0, "quota": 0, "index": 0}, r.remains(log))
	require.GreaterOrEqual(t, r.remains(other)["events"], uint64(3), "others keep what they have")
	status, body = w.ask("alice", "DELETE", "/api/v1/sessions/s1")
	require.Equal(t, http.StatusNoContent, status, "once more: "+body)
	status, _ = w.ask("alice", "DELETE", "/api/v1/sessions/nope")
	require.Equal(t, http.StatusNotFound, status)

	require.Eventually(t, func() bool {
		_, body = w.ask("alice", "GET", "/api/v1/sessions")
		return strings.Contains(body, `"other"`)
	}, maxWait, 5*time.Millisecond)
	require.NotContains(t, body, `"s1"`)
	for _, path := range []string{"GET /%s", "GET /%s/events", "GET /%s/events?after=2", "POST /%s/cancel", "GET /%s/state"} {
		method, path, _ := strings.Cut(path, " ")
		status, body = w.ask("alice", method, "/api/v1/sessions"+fmt.Sprintf(path, "s1"))
		require.Equal(t, http.StatusGone, status, path+body)
		require.Contains(t, body, "SESSION_DELETED")
		is, foreign := w.ask("eve", method, "/api/v1/sessions"+fmt.Sprintf(path, "s1"))
		none, missing := w.ask("eve", method, "/api/v1/sessions"+fmt.Sprintf(path, "nope"))
		require.Equal(t, none, is, path)
		require.Equal(t, missing, foreign, path)
	}
	isFault(t, second(r.attach(cmd.AttachRequest{Live: true})), fault.SessionDeleted)
	isFault(t, second(r.export(cmd.ExportRequest{})), fault.SessionDeleted)
	isFault(t, second(r.restore(state.Signed)), fault.SessionDeleted)

	var got []record.Record
	require.Eventually(t, func() bool {
		got = nil
		err := audit.Read(r.Ctx, r.Conn, audit.Query{Action: record.Deleted.String()}, func(a record.Record) error {
			got = append(got, a)
			return nil
		})
		return err == nil && len(got) > 0
	}, maxWait, 5*time.Millisecond)
	require.Len(t, got, 1)
	require.Equal(t, "alice", got[0].Principal)
	require.Equal(t, "s1", got[0].Entity)
	require.Equal(t, record.Done, got[0].Outcome)
}

// Commands after the deletion are settled: their senders get the fault, no dead letter is written
// and no event appended, also by a replica that folded the log before.
func TestCommandsForADeletedSessionAreSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	r.startPipeline("p")
	r.busy(log)
	gateway, connection := id.MustName("gw"), id.MustName("c1")
	told := make(chan *nats.Msg, 8)
	sub, err := r.Conn.NATS().ChanSubscribe(subject.Direct(gateway, connection), told)
	require.NoError(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	r.command(log, cmd.Session, cmd.Delete, "d1", nil)
	r.gone(log)
	for i, c := range []cmd.Command{
		{Service: cmd.Pipeline, Verb: cmd.SendMessage},
		{Service: cmd.Pipeline, Verb: cmd.CheckDeadlines},
		{Service: cmd.Pipeline, Verb: cmd.SettleJob},
		{Service: cmd.Session, Verb: cmd.Open},
		{Service: cmd.Session, Verb: cmd.Expire},
		{Service: cmd.Session, Verb: cmd.Close},
		{Service: cmd.Session, Verb: cmd.Ack},
		{Service: cmd.Session, Verb: cmd.Delete},
	} {
		c.ID, c.Tenant, c.Key, c.Time = fmt.Sprint("late-", i), log.Tenant, log.Entity, time.Now()
		if c.Verb == cmd.SendMessage || c.Verb == cmd.Open {
			c.ReplyTo = subject.ReplyTo(gateway, connection)
		}
		r.Command(c, cmd.AckEvents{ClientID: "phone", Seq: 1})
	}
	for range 2 {
		var e event.Event
		require.NoError(t, json.Unmarshal((<-told).Data, &e))
		d, err := event.As[event.CommandRefusedData](e)
		require.NoError(t, err)
		require.Equal(t, string(fault.SessionDeleted), d.Code)
	}
	r.settled()
	require.Equal(t, map[string]uint64{"events": 1, "acks": 0, "timers": 0, "dead": 0, "quota": 0, "index": 0}, r.remains(log))
}

// settled waits until the services have handled all commands.
func (r *rig) settled() {
	r.T.Helper()
	require.Eventually(r.T, func() bool {
		return r.messages(subject.StreamCommands, subject.CommandFilterAll(cmd.Session)) == 0 &&
			r.messages(subject.StreamCommands, subject.CommandFilterAll(cmd.Pipeline)) == 0
	}, maxWait, 5*time.Millisecond)
}

// gone waits until nothing is left of a session but its tombstone.
func (r *rig) gone(l subject.Log) {
	r.T.Helper()
	require.Eventually(r.T, func() bool {
		first, last, err := r.Log.Ends(r.Ctx, l)
		return err == nil && first != nil && first.Type.Tombstone() && first.Sequence == last.Sequence
	}, maxWait, 5*time.Millisecond)
}

// A session with an expired head, or with a log that cannot be folded, can be deleted, too.
func TestALogThatCannotBeFoldedIsDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	expired, damaged := sessionLog("expired"), sessionLog("damaged")
	r.open(expired, event.Preferences{})
	r.append(expired, notice("1"), notice("2"))
	r.expire(expired, r.append(expired, notice("3")))
	r.append(expired, event.RunStartedData{RunID: "of a message that has expired"})
	r.open(damaged, event.Preferences{})
	r.append(damaged, event.RunStartedData{RunID: "never accepted"})
	for _, l := range []subject.Log{expired, damaged} {
		r.command(l, cmd.Session, cmd.Delete, "d1", nil)
		r.gone(l)
	}
	require.Zero(t, r.messages(subject.StreamDead, "dead.>"))
	absent := sessionLog("nobody")
	r.command(absent, cmd.Session, cmd.Delete, "d1", nil)
	r.settled()
	first, _, err := r.Log.Ends(r.Ctx, absent)
	require.NoError(t, err)
	require.Nil(t, first, "what does not exist gets no tombstone")
}

// A redelivery completes the deletion: after the tombstone without a removal, and after the removal
// without an answer.
func TestADeletionGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	service := r.start("a", session.Config{})
	r.startPipeline("p")
	r.busy(log)
	service.Stop()
	r.append(log, event.SessionDeletedData{Reason: "user_request"})
	require.Equal(t, uint64(1), r.remains(log)["acks"], "it died here")
	w := r.serveAPI()
	r.start("b", session.Config{})
	status, body := w.ask("alice", "DELETE", "/api/v1/sessions/s1")
	require.Equal(t, http.StatusNoContent, status, body)
	require.Equal(t, map[string]uint64{"events": 1, "acks": 0, "timers": 0, "dead": 0, "quota": 0, "index": 0}, r.remains(log))
	at, err := r.Log.Erase(r.Ctx, log)
	require.NoError(t, err)
	require.Zero(t, at)
	_, err = r.Log.Last(r.Ctx, log)
	require.ErrorIs(t, err, eventlog.ErrDeleted)
}

// A deletion that no service can carry out while the client waits is accepted, and carried
// out by the first one that starts.
func TestADeletionIsAcceptedWithoutService(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	service := r.start("a", session.Config{})
	w := r.serveAPI()
	r.open(log, event.Preferences{})
	service.Stop()
	status, body := w.ask("alice", "DELETE", "/api/v1/sessions/s1")
	require.Equal(t, http.StatusAccepted, status, body)
	require.Contains(t, body, `"accepted":true`)
	r.start("b", session.Config{})
	r.gone(log)
	status, _ = w.ask("alice", "DELETE", "/api/v1/sessions/s1")
	require.Equal(t, http.StatusNoContent, status)
}

// A long session leaves no snapshot either.
func TestADeletedSessionLeavesNoSnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	r.startPipeline("p")
	r.open(log, event.Preferences{})
	w := r.Store().Writer(log, nil)
	notices := make([]event.Event, snapshots.Every)
	for n := range notices {
		var err error
		notices[n], err = event.New(log, fmt.Sprint("notice", n), "test", time.Now(), event.NoticeData{Message: "the secret is 42"})
		require.NoError(t, err)
	}
	require.NoError(t, w.Append(r.Ctx, func() ([]event.Event, error) {
		all := notices
		notices = nil
		return all, nil
	}))
	r.command(log, cmd.Pipeline, cmd.SendMessage, "m1", cmd.UserMessage{Content: "what is the secret?"})
	require.Eventually(t, func() bool { return r.remains(log)["snapshot"] == 1 }, maxWait, 5*time.Millisecond)

	r.command(log, cmd.Session, cmd.Delete, "delete", nil)
	require.Eventually(t, func() bool { return r.remains(log)["events"] == 1 }, maxWait, 5*time.Millisecond)
	require.NotContains(t, r.remains(log), "snapshot")
}
