package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestTheAuditLogSaysWhatHappened: the one answer that counts is recorded once, with the call that it is for; others are refusals;
// and the call itself is recorded.
func TestTheAuditLogSaysWhatHappened(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, pay("call_0", 5))), scripted.Stream(scripted.Text("paid"))), nil)
	r.worker("w1", nil)
	run := r.ask("pay")
	r.until(run, event.JobSuspended)
	q := r.questions(1)[0]
	answer := func(id, digest string) {
		r.Command(cmd.Command{
			ID: id, Service: cmd.Member, Verb: cmd.Answer, Tenant: r.ref.Tenant, Key: r.ref.Entity, Principal: "alice", Time: time.Now(),
		}, cmd.AnswerQuestion{CallID: q.CallID, Digest: digest, Approved: true})
	}
	r.release <- struct{}{}
	answer("other", "0123")
	answer("first", q.Digest)
	r.until(run, event.RunCompleted)
	answer("second", q.Digest)

	decisions := r.Audited(3, audit.Decided)
	require.Len(t, decisions, 3)
	for i, want := range []audit.Record{
		{Outcome: audit.Denied, Code: string(fault.InputNotFound), Command: "other", Digest: "0123"},
		{Outcome: audit.Approve, Command: "first", Digest: q.Digest, Tool: "bank_pay"},
		{Outcome: audit.Denied, Code: string(fault.InputAnswered), Command: "second", Digest: q.Digest},
	} {
		got := decisions[i]
		require.Equal(t, "alice", got.Principal)
		require.Equal(t, q.InputID, got.Input)
		require.Equal(t, r.ref.Entity.String(), got.Entity)
		require.Equal(t, want, audit.Record{Outcome: got.Outcome, Code: got.Code, Command: got.Command, Digest: got.Digest, Tool: got.Tool})
	}
	calls := r.Audited(1, audit.ToolCalled)
	require.Len(t, calls, 1)
	require.Equal(t, []string{"bank", "pay", q.Digest, q.CallID, q.InputID, audit.Done},
		[]string{calls[0].Server, calls[0].Tool, calls[0].Digest, calls[0].Call, calls[0].Input, calls[0].Outcome})
}
