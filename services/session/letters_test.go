package session_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/command"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/installation"
	"github.com/waggle-dev/waggle/services/session"
)

// TestACommandThatWasHandledIsNotRunAgain: dead letters with a command that the session's log has, as after a crash between the two
// or a repeat when the bus has forgotten the first, change nothing.
func TestACommandThatWasHandledIsNotRunAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	r.startPipeline("p")
	box := installation.New(installation.Config{Conn: r.Conn, Log: r.Log, Logger: zerolog.Nop()})
	require.NoError(t, box.Start(r.Ctx))
	t.Cleanup(box.Stop)
	w := r.serveAPI()
	r.open(log, event.Preferences{})
	said := cmd.Command{
		ID: "m1", Service: cmd.Pipeline, Verb: cmd.SendMessage, Tenant: log.Tenant, Key: log.Entity, Principal: "alice",
		Data: json.RawMessage(`{"content":"hello"}`), Time: time.Now().UTC(),
	}
	require.NoError(t, r.Send.Send(r.Ctx, said))
	r.Until(log, event.RunStarted, 1)
	raw, err := json.Marshal(said)
	require.NoError(t, err)
	letter, err := json.Marshal(command.DeadLetter{Command: raw, Reason: "lost", Deliveries: 6, Time: time.Now().UTC()})
	require.NoError(t, err)
	for range 3 {
		ack, err := r.Conn.JS().PublishMsg(r.Ctx, &nats.Msg{Subject: said.Address().Dead(), Data: letter})
		require.NoError(t, err)
		out := answerOf[wire.Accepted](w, "olga", "POST", fmt.Sprintf("/api/v1/dead-letters/%d/resend", ack.Sequence), "", 202)
		require.Equal(t, "m1", out.CommandID)
	}
	r.command(log, cmd.Pipeline, cmd.Cancel, "stop", cmd.CancelRun{}) // behind all of them
	r.Until(log, event.RunCancelled, 1)
	received := 0
	for _, e := range r.All(log) {
		if e.Type == event.MessageReceived {
			received++
		}
	}
	require.Equal(t, 1, received)
}
