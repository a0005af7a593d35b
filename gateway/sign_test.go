package gateway_test

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/signature"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// signing returns the option of a gateway that signs, and the verifier of its key.
func signing(t *testing.T) (option, *signature.Verifier) {
	t.Helper()
	pair, err := nkeys.CreatePair(signature.Prefix)
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	s, err := signature.NewSigner(seed, nil)
	require.NoError(t, err)
	public, err := s.Public()
	require.NoError(t, err)
	v, err := signature.NewVerifier(public)
	require.NoError(t, err)
	return func(_ *gateway.Config, d *gateway.Deps) { d.Signer = s }, v
}

// TestAnApprovalIsForTheCallThatWasShown: a captured worker shows a harmless call under the digest of another one. The gateway
// signs the approval for the call that the client has seen, on a connection that has shown the question and on one that
// began after it.
func TestAnApprovalIsForTheCallThatWasShown(t *testing.T) {
	sign, v := signing(t)
	r, _ := startTeams(t, sign)
	l := r.runLog(id.KindTeam, "default")
	name := l.Entity.String()
	shown := r.open(pathSingle, "watch=team/"+name)
	shown.expectTeamFrame("greeting")
	shown.expectTeamFrame("greeting")
	question := func(seq uint64, call, arguments string) {
		r.relay(l, "Coder", seq, event.InputRequestedData{
			InputID: "approve_" + call, RunID: "r", ExecutionID: "e", Scope: event.ScopeTool, CallID: call, Tool: "bank_pay",
			Arguments: json.RawMessage(arguments), Digest: signature.Digest("bank_pay", json.RawMessage(`{"amount":1000}`)),
		})
	}
	question(1, "call_1", `{"amount":1}`)
	question(2, "call_2", `{ "amount": 2 }`)
	for range 3 { // the log's first event, too
		shown.expectFrame("event")
	}
	later := r.open(pathSingle, "after=3&watch=team/"+name)
	later.expectTeamFrame("greeting")
	later.expectTeamFrame("greeting")
	member, err := id.MemberAgent(l.Entity, "Coder")
	require.NoError(t, err)
	for _, x := range []struct {
		c               *client
		call, arguments string
	}{{shown, "call_1", `{"amount":1}`}, {later, "call_2", `{"amount":2}`}} {
		x.c.sendTeam("approve", "Coder", x.call)
		c := r.nextCommand(name)
		require.True(t, v.Signed(c))
		var d wirecmd.AnswerQuestion
		require.NoError(t, c.Decode(&d))
		require.Equal(t, signature.Digest("bank_pay", json.RawMessage(x.arguments)), d.Digest)
		require.NoError(t, signature.Approval(v, c.Proof(), l.Tenant, id.KindMember, member, x.call, d.Digest))
	}
	shown.sendTeam("approve", "Coder", "unknown")
	var d wirecmd.AnswerQuestion
	require.NoError(t, r.nextCommand(name).Decode(&d))
	require.Empty(t, d.Digest, "the service refuses it")
}

// TestCommandsOfClientsAreSigned, whatever the client asks for.
func TestCommandsOfClientsAreSigned(t *testing.T) {
	sign, v := signing(t)
	r, _ := startTeams(t, sign)
	l := r.runLog(id.KindTeam, "default")
	c := r.open(pathSingle, "watch=team/"+l.Entity.String())
	c.expectTeamFrame("greeting")
	for _, ask := range []string{"say", "stop", "pause"} {
		c.sendTeam(ask, "", "a < b & c")
		got := r.nextCommand(l.Entity.String())
		require.True(t, v.Signed(got), ask)
		got.Principal = "another"
		require.False(t, v.Signed(got), ask)
	}
}
