package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/signature"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
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

// hostileDigest is the digest of the call that a captured worker wants to run.
var hostileDigest = signature.Digest("bank_pay", json.RawMessage(`{"amount":1000}`))

// claims returns a question of a captured worker: it shows the arguments under the digest of another call.
func claims(call, scope, arguments string) event.InputRequestedData {
	return event.InputRequestedData{
		InputID: "approve_" + call, RunID: "r", ExecutionID: "e", Scope: scope, CallID: call, Tool: "bank_pay",
		Arguments: json.RawMessage(arguments), Digest: hostileDigest,
	}
}

// signedFor takes the next command for a log, which has to be an approval of the call as it was shown.
func (r *rig) signedFor(v *signature.Verifier, log subject.Log, kind id.Kind, entity id.Entity, call, arguments string) (commandID string) {
	r.t.Helper()
	c := r.nextCommand(log.Entity.String())
	require.True(r.t, v.Signed(c))
	var d wirecmd.AnswerQuestion
	require.NoError(r.t, c.Decode(&d))
	require.Equal(r.t, signature.Digest("bank_pay", json.RawMessage(arguments)), d.Digest)
	require.NoError(r.t, signature.Approval(v, c.Proof(), log.Tenant, kind, entity, call, d.Digest))
	return c.ID
}

// signedWithout takes the next command for a log, which has to be an answer without a digest.
func (r *rig) signedWithout(log subject.Log) (commandID string) {
	r.t.Helper()
	var d wirecmd.AnswerQuestion
	c := r.nextCommand(log.Entity.String())
	require.NoError(r.t, c.Decode(&d))
	require.Empty(r.t, d.Digest)
	return c.ID
}

// TestAnApprovalIsForTheCallThatWasShown: a captured worker shows a harmless call under the digest of another one. The gateway
// signs the approval for the call that the client has seen, on a connection that has shown the question and on one that
// began after it, and refuses one whose client sends the digest of the question back.
func TestAnApprovalIsForTheCallThatWasShown(t *testing.T) {
	sign, v := signing(t)
	r, _ := startTeams(t, sign)
	l := r.runLog(id.KindTeam, "default")
	name := l.Entity.String()
	shown := r.open(pathSingle, "watch=team/"+name)
	shown.expectTeamFrame("greeting")
	shown.expectTeamFrame("greeting")
	for seq, q := range []event.InputRequestedData{
		claims("call_1", event.ScopeTool, `{"amount":1}`), claims("call_2", event.ScopeTool, `{ "amount": 2 }`),
		claims("call_3", event.ScopePlan, `{"amount":3}`), claims("call_4", event.ScopeTool, `{"amount":4}`), claims("call_4", event.ScopeTool, `{"amount":1000}`),
	} {
		r.relay(l, "Coder", uint64(seq+1), q)
	}
	r.relay(l, "Other", 1, claims("call_2", event.ScopeTool, `{"amount":22}`))
	for range 7 { // the log's first event, too
		shown.expectFrame("event")
	}
	later := r.open(pathSingle, "after=7&watch=team/"+name)
	later.expectTeamFrame("greeting")
	later.expectTeamFrame("greeting")
	member, err := id.MemberAgent(l.Entity, "Coder")
	require.NoError(t, err)
	other, err := id.MemberAgent(l.Entity, "Other")
	require.NoError(t, err)
	for _, c := range []*client{shown, later} {
		c.sendTeam("approve", "Coder", "call_1")
		r.signedFor(v, l, id.KindMember, member, "call_1", `{"amount":1}`)
		c.sendTeam("approve", "Coder", "call_2")
		r.signedFor(v, l, id.KindMember, member, "call_2", `{"amount":2}`)
		c.sendTeam("approve", "Other", "call_2")
		r.signedFor(v, l, id.KindMember, other, "call_2", `{"amount":22}`)
		for _, refused := range []teamRequest{
			{To: "Coder", Text: "call_1", Digest: hostileDigest}, // as clients send it that show the digest of the question
			{To: "Coder", Text: "call_4"},                        // which was shown with two calls
			{Text: "call_2"},                                     // of which member?
		} {
			refused.Ask = "approve"
			c.sendTeamFrame(refused)
			f := c.expectTeamFrame("failed")
			require.Equal(t, string(fault.InputNotFound), f.Code, "%+v", refused)
			require.Contains(t, f.Text, "does not match the call", "%+v", refused)
		}
		for _, drops := range []string{"call_3", "unknown"} { // the service refuses it, or needs none
			c.sendTeamFrame(teamRequest{Ask: "approve", To: "Coder", Text: drops, Digest: hostileDigest})
			r.signedWithout(l)
		}
	}
}

// TestAnApprovalOverHTTPIsForTheCallThatWasShown: so does AG-UI, whose requests have no connection.
func TestAnApprovalOverHTTPIsForTheCallThatWasShown(t *testing.T) {
	sign, v := signing(t)
	r := start(t, sign)
	l := r.session("default")
	for _, d := range []event.Data{
		event.MessageReceivedData{MessageID: "m", RunID: "r", Content: "pay"},
		event.RunStartedData{RunID: "r", ExecutionID: "e", MessageID: "m", Content: "pay"},
		event.MessageCompletedData{MessageID: "a", RunID: "r", ExecutionID: "e", Attempt: 1, ToolCalls: []event.ToolCall{
			{ID: "call_5", Name: "bank_pay", Arguments: json.RawMessage(`{"amount":5}`)},
		}},
		claims("call_1", event.ScopeTool, `{"amount":1}`), claims("call_2", event.ScopeClientTool, `{"amount":2}`), claims("call_3", event.ScopePlan, `{"amount":3}`),
		claims("call_4", event.ScopeTool, `{"amount":4}`), claims("call_4", event.ScopeTool, `{"amount":1000}`), // the thread shows the first one
		claims("call_5", event.ScopeTool, `{"amount":1000}`), // the thread shows the call of the message
	} {
		require.NoError(t, r.append(l, unique(), d))
	}
	answer := func(call string, approved bool) (status int, body string) {
		return r.post("/agui/threads/"+l.Entity.String()+"/answers", fmt.Sprintf(`{"resume":[{"interruptId":"approve_%s","status":"resolved","payload":%v}]}`, call, approved))
	}
	for _, call := range []string{"call_4", "call_5"} {
		status, body := answer(call, true)
		require.Equal(t, http.StatusUnprocessableEntity, status, "%s: %s", call, body)
		require.Contains(t, body, "does not match the call", call)
	}
	require.Empty(t, r.inbox(l.Entity.String()), "nothing was sent")
	for _, x := range []struct {
		call     string
		approved bool
		signed   func() string
	}{
		{"call_1", true, func() string { return r.signedFor(v, l, id.KindSession, l.Entity, "call_1", `{"amount":1}`) }},
		{"call_2", true, func() string { return r.signedWithout(l) }},
		{"call_3", true, func() string { return r.signedWithout(l) }},
		{"call_5", false, func() string { return r.signedWithout(l) }}, // it can be rejected
	} {
		done := make(chan int, 1)
		go func() {
			status, _ := answer(x.call, x.approved)
			done <- status
		}()
		command := x.signed()
		require.NoError(t, r.append(l, unique(), event.InputAnsweredData{InputID: "approve_" + x.call, RunID: "r", ExecutionID: "e", CallID: x.call, CommandID: command}))
		select {
		case status := <-done:
			require.Equal(t, http.StatusAccepted, status, x.call)
		case <-time.After(maxWait):
			require.FailNow(t, "no answer", x.call)
		}
	}
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
