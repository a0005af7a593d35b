package session_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/session"
)

func notice(text string) event.Data {
	return event.NoticeData{Level: "info", Code: "TEST", Message: text}
}

func TestWhereAReturningClientStands(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{StateKeys: keys})
	r.open(log, event.Preferences{Language: "en_US"})
	third := r.append(log, notice("2"), notice("3"))
	last := r.append(log, notice("4"), notice("5"))
	at := func(n uint64) *uint64 { return &n }

	got, err := r.attach(cmd.AttachRequest{})
	require.NoError(t, err)
	require.Equal(t, cmd.AttachReply{After: "0", Head: 5, Language: "en_US"}, got)
	got, err = r.attach(cmd.AttachRequest{After: at(2)})
	require.NoError(t, err)
	require.Equal(t, "2", got.After)
	got, err = r.attach(cmd.AttachRequest{EventID: third.String(), After: at(1)})
	require.NoError(t, err)
	require.Equal(t, third.String(), got.After)
	got, err = r.attach(cmd.AttachRequest{Live: true})
	require.NoError(t, err)
	require.Equal(t, last.String(), got.After)

	f := isFault(t, second(r.attach(cmd.AttachRequest{After: at(6)})), fault.CursorInvalid)
	require.Equal(t, "last_seq", f.Field)
	require.JSONEq(t, "6", string(f.Provided))
	for _, bad := range []string{"6.1", "x", "-1", "1.2.3"} {
		f = isFault(t, second(r.attach(cmd.AttachRequest{EventID: bad})), fault.CursorInvalid)
		require.Equal(t, "last_event_id", f.Field, bad)
	}

	state, err := r.export(cmd.ExportRequest{})
	require.NoError(t, err)
	for hash, want := range map[string]bool{state.Hash: true, "sha256:" + state.Hash: true, "other": false} {
		got, err = r.attach(cmd.AttachRequest{Hash: hash})
		require.NoError(t, err)
		require.NotNil(t, got.HashMatched)
		require.Equal(t, want, *got.HashMatched)
		require.Nil(t, got.Exported)
	}

	// The head expires: what is left is shown, with the state for what is not.
	r.expire(log, third)
	got, err = r.attach(cmd.AttachRequest{After: at(1)})
	require.NoError(t, err)
	require.Equal(t, "3", got.After)
	require.EqualValues(t, 4, got.FirstSeq)
	require.NotNil(t, got.Exported)
	require.EqualValues(t, 5, got.Exported.Seq)
	require.NotEmpty(t, got.Exported.Signed)
	got, err = r.attach(cmd.AttachRequest{After: at(3)})
	require.NoError(t, err)
	require.Zero(t, got.FirstSeq)
	require.Nil(t, got.Exported)
}

func second[T any](_ T, err error) error { return err }

func TestASessionThatIsNotThereIsNotSaidToBe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{StateKeys: keys})
	r.open(log, event.Preferences{})
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	want := isFault(t, second(r.attach(cmd.AttachRequest{Session: id.EntityFromExternal("nope")})), fault.SessionExpired)
	require.Equal(t, want, isFault(t, second(r.attach(cmd.AttachRequest{Tenant: other})), fault.SessionExpired))
	isFault(t, second(r.export(cmd.ExportRequest{Tenant: other, Session: log.Entity})), fault.SessionExpired)

	// One that its user has closed can still be read; one whose time is over cannot,
	// whatever was refused afterwards.
	r.command(log, cmd.Session, cmd.Close, "close", cmd.CloseSession{})
	r.Until(log, event.SessionClosed, 1)
	got, err := r.attach(cmd.AttachRequest{})
	require.NoError(t, err)
	require.EqualValues(t, 2, got.Head)
	over := sessionLog("over")
	r.append(over, event.SessionCreatedData{}, event.SessionClosedData{Reason: "timeout"})
	isFault(t, second(r.attach(cmd.AttachRequest{Session: over.Entity})), fault.SessionExpired)
	r.append(over, event.MessageRefusedData{MessageID: "m", Code: "SESSION_CLOSED"})
	isFault(t, second(r.attach(cmd.AttachRequest{Session: over.Entity})), fault.SessionExpired)
	r.append(over, event.SessionRestoredData{State: []byte(`{}`)})
	_, err = r.attach(cmd.AttachRequest{Session: over.Entity})
	require.NoError(t, err)
}

func TestAClientGoesOnWhereItsLastAckWas(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	r.start("b", session.Config{})
	r.open(log, event.Preferences{})
	last := r.append(log, notice("2"), notice("3"), notice("4"))
	n := 0
	ack := func(l subject.Log, client string, seq uint64) {
		n++
		r.command(l, cmd.Session, cmd.Ack, fmt.Sprint("ack", n), cmd.AckEvents{ClientID: client, Seq: seq})
	}
	// handled waits until all that was sent for the session before has been handled.
	handled := func(l subject.Log) {
		n++
		ack(l, fmt.Sprint("probe", n), 1)
		client := fmt.Sprint("probe", n-1)
		require.Eventually(t, func() bool {
			got, err := r.attach(cmd.AttachRequest{Session: l.Entity, ClientID: client})
			return err == nil && got.After == "1"
		}, maxWait, 5*time.Millisecond)
	}
	after := func(client string) string {
		got, err := r.attach(cmd.AttachRequest{ClientID: client})
		require.NoError(t, err)
		return got.After
	}
	ack(log, "phone", 3)
	ack(log, "phone", 2) // late
	ack(log, "desk top/1", 99)
	ack(log, "", 3)
	ack(log, "tablet", 0)
	handled(log)
	require.Equal(t, "3", after("phone"))
	require.Equal(t, last.String(), after("desk top/1"), "never beyond the newest")
	require.Equal(t, "0", after("tablet"))
	require.Equal(t, "0", after("new"))
	require.Equal(t, "0", after(""))

	// The same command again, an ack of a session that does not exist, and nonsense.
	ack(log, "phone", 3)
	ack(sessionLog("nobody"), "phone", 3)
	r.command(log, cmd.Session, cmd.Ack, "bad", "nonsense")
	handled(log)
	require.Equal(t, "3", after("phone"))
	require.Len(t, r.All(log), 4, "acks are no events")
	end, err := r.Log.Last(r.Ctx, sessionLog("nobody"))
	require.NoError(t, err)
	require.Equal(t, eventlog.Cursor{}, end)

	// An explicit position wins over the acknowledged one.
	zero := uint64(0)
	got, err := r.attach(cmd.AttachRequest{ClientID: "phone", After: &zero})
	require.NoError(t, err)
	require.Equal(t, "0", got.After)
}

// listed waits until the index of lists has the log up to the event, so that the service need not read that part any more.
func (r *rig) listed(l subject.Log, seq uint64) {
	r.T.Helper()
	s, err := r.Conn.JS().Stream(r.Ctx, subject.StreamIndex)
	require.NoError(r.T, err)
	require.Eventually(r.T, func() bool {
		m, err := s.GetLastMsgForSubject(r.Ctx, l.Index())
		if err != nil {
			return false
		}
		has, err := strconv.ParseUint(m.Header.Get(event.HeaderSeq), 10, 64)
		return err == nil && has >= seq
	}, maxWait, 5*time.Millisecond)
}

// Whether a session with a long log has expired is found at the log's end.
func TestTheEndOfALongSessionIsFoundAtItsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", indexed)
	r.open(log, event.Preferences{})
	pieces := make([]event.Data, 1200)
	for i := range pieces {
		pieces[i] = event.MessageDeltaData{MessageID: "m", RunID: "r", Text: "word "}
	}
	r.append(log, pieces...)
	news := r.append(log, event.MessageReceivedData{MessageID: "m2", RunID: "r2"})
	r.append(log, notice("late"))
	r.listed(log, news.Seq)
	var read atomic.Int64
	done := make(chan struct{})
	nc := bustest.Dial(t, r.Conn.NATS().ConnectedUrl()).NATS()
	sub, err := nc.Subscribe("_INBOX.>", func(m *nats.Msg) {
		switch {
		case m.Subject == "_INBOX.done":
			done <- struct{}{}
		case m.Header.Get("Nats-Subject") == subject.DefaultPartitions.Event(log):
			read.Add(1)
		}
	})
	require.NoError(t, err)
	require.NoError(t, sub.SetPendingLimits(-1, -1))
	require.NoError(t, nc.Flush())
	count := func() int64 {
		require.NoError(t, r.Conn.NATS().Publish("_INBOX.done", nil))
		<-done
		return read.Swap(0)
	}
	count()
	_, err = r.attach(cmd.AttachRequest{Live: true})
	require.NoError(t, err)
	require.Less(t, count(), int64(400))
	closed := r.append(log, event.SessionClosedData{Reason: "timeout"})
	r.append(log, slices.Repeat([]event.Data{notice("after")}, 100)...)
	r.listed(log, closed.Seq)
	count()
	isFault(t, second(r.attach(cmd.AttachRequest{Live: true})), fault.SessionExpired)
	n := count()
	require.Positive(t, n)
	require.Less(t, n, int64(600))
}
