package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/session"
)

func TestASessionOpensWithWhatItsMakerAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	yes := true
	want := event.Preferences{
		ClientID: "phone", UserID: "u1", Language: "en_US", ConfirmPlan: &yes, OnBusy: event.OnBusyEnqueue, Extra: []byte(`{"app":"x"}`),
	}
	r.open(log, want)
	got, err := event.As[event.SessionCreatedData](r.All(log)[0])
	require.NoError(t, err)
	require.Equal(t, want, got.Preferences)
	require.Equal(t, "myagent", got.Dialect)
	r.command(log, cmd.Session, cmd.Open, "again", cmd.OpenSession{Dialect: "orbit"})
	r.command(log, cmd.Session, cmd.Close, "close", cmd.CloseSession{})
	require.Len(t, r.Until(log, event.SessionClosed, 1), 2, "it is opened once")
}

func TestAnIdleSessionExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{TTL: time.Second})
	r.startPipeline("p")
	r.open(log, event.Preferences{})
	events := r.Until(log, event.SessionClosed, 1)
	d, err := event.As[event.SessionClosedData](events[len(events)-1])
	require.NoError(t, err)
	require.Equal(t, "timeout", d.Reason)
	require.NotNil(t, d.Stats)
	require.Equal(t, "success", d.Stats.CompletionStatus)
	require.GreaterOrEqual(t, d.Stats.DurationSeconds, int64(1))
	require.GreaterOrEqual(t, events[1].Time.Sub(events[0].Time), time.Second)
	r.command(log, cmd.Pipeline, cmd.SendMessage, "late", cmd.UserMessage{Content: "hello?"})
	require.Len(t, r.Until(log, event.MessageRefused, 1), 3)
}

func TestServiceIsAComponent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	n := 0
	lifecycletest.Exercise(t, func() lifecycle.Component {
		n++
		return r.service(fmt.Sprint("c", n), session.Config{StateKeys: keys})
	})
}

func TestAStateKeyThatCanBeGuessedIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := session.New(session.Config{StateKeys: [][]byte{[]byte("short")}}, r.Deps("a"))
	require.ErrorContains(t, err, "key 1")
}
