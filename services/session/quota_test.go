package session_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/quota"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/session"
)

// Two services keep one quota: who opens one session too many is told, nothing is in its
// log, and a session that is closed makes room.
func TestOpenSessionsAreBounded(t *testing.T) {
	r := newRig(t)
	cfg := session.Config{Quota: quota.Config{Policy: quota.Policy{Tenant: quota.Limits{Sessions: 2}}}}
	r.start("one", cfg)
	r.start("two", cfg)
	gateway, connection := id.MustName("gw"), id.MustName("c1")
	told := make(chan *nats.Msg, 8)
	sub, err := r.Conn.NATS().ChanSubscribe(subject.Direct(gateway, connection), told)
	require.NoError(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	n := 0
	open := func(l subject.Log) {
		n++
		raw, err := json.Marshal(cmd.OpenSession{Dialect: "myagent"})
		require.NoError(t, err)
		require.NoError(t, r.Send.Send(r.Ctx, cmd.Command{
			ID: fmt.Sprint("open-", n), Service: cmd.Session, Verb: cmd.Open, Tenant: l.Tenant, Key: l.Entity, Principal: "ann",
			ReplyTo: subject.ReplyTo(gateway, connection), Time: time.Now(), Data: raw,
		}))
	}
	a, b, c := sessionLog("a"), sessionLog("b"), sessionLog("c")
	open(a)
	r.Until(a, event.SessionCreated, 1)
	open(b)
	r.Until(b, event.SessionCreated, 1)
	open(b) // again: it has its place
	open(c)
	var e event.Event
	select {
	case m := <-told:
		require.NoError(t, json.Unmarshal(m.Data, &e))
	case <-time.After(maxWait):
		require.FailNow(t, "nobody is told")
	}
	d, err := event.As[event.CommandRefusedData](e)
	require.NoError(t, err)
	require.Equal(t, string(fault.QuotaExceeded), d.Code)
	require.Contains(t, d.Message, "quota of 2 open sessions")
	last, err := r.Log.Last(r.Ctx, c)
	require.NoError(t, err)
	require.Zero(t, last.Seq)

	r.command(a, cmd.Session, cmd.Close, "close", cmd.CloseSession{})
	r.Until(a, event.SessionClosed, 1)
	require.Eventually(t, func() bool {
		open(c)
		select {
		case <-told: // its place is not free yet
			return false
		case <-time.After(200 * time.Millisecond):
		}
		last, err := r.Log.Last(r.Ctx, c)
		return err == nil && last.Seq > 0
	}, maxWait, time.Millisecond)
}
