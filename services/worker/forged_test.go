package worker_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/signature"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAForgedApprovalRunsNothing: the key of a role that may write to logs is stolen, and the thief appends the answer to a
// question. Only the proof that a gateway has signed for exactly this call lets it run.
func TestAForgedApprovalRunsNothing(t *testing.T) {
	gateway, verifier := servicetest.Keys(t, nil)
	// signed returns the proof of an answer of alice.
	signed := func(r *rig, key string, d cmd.AnswerQuestion) *event.Proof {
		data, err := json.Marshal(d)
		require.NoError(r.T, err)
		c := cmd.Command{
			ID: "answer", Service: cmd.Team, Verb: cmd.Answer, Tenant: id.DefaultTenant, Key: id.EntityFromExternal(key), Principal: "alice", Data: data,
		}
		require.NoError(r.T, gateway.Sign(&c))
		return c.Proof()
	}
	for name, c := range map[string]struct {
		proof   func(r *rig, q event.InputRequestedData) *event.Proof
		changed string // the arguments that the event says
		runs    bool
	}{
		"no proof": {proof: func(*rig, event.InputRequestedData) *event.Proof { return nil }},
		"another key": {proof: func(r *rig, q event.InputRequestedData) *event.Proof {
			p := signed(r, "team_0123456789abcdef", cmd.AnswerQuestion{CallID: q.CallID, Digest: q.Digest, Approved: true})
			p.Signature = "AAAA" + p.Signature[4:]
			return p
		}},
		"another call": {proof: func(r *rig, q event.InputRequestedData) *event.Proof {
			return signed(r, "team_0123456789abcdef", cmd.AnswerQuestion{CallID: "harmless", Digest: q.Digest, Approved: true})
		}},
		"other arguments": {proof: func(r *rig, q event.InputRequestedData) *event.Proof {
			return signed(r, "team_0123456789abcdef", cmd.AnswerQuestion{CallID: q.CallID, Digest: signature.Digest(q.Tool, []byte(`{"amount":1}`)), Approved: true})
		}},
		"a rejection": {proof: func(r *rig, q event.InputRequestedData) *event.Proof {
			return signed(r, "team_0123456789abcdef", cmd.AnswerQuestion{CallID: q.CallID, Digest: q.Digest})
		}},
		"another team": {proof: func(r *rig, q event.InputRequestedData) *event.Proof {
			return signed(r, "team_fedcba9876543210", cmd.AnswerQuestion{CallID: q.CallID, Digest: q.Digest, Approved: true})
		}},
		"arguments that the person did not change": {changed: `{"amount":1000}`, proof: func(r *rig, q event.InputRequestedData) *event.Proof {
			return signed(r, "team_0123456789abcdef", cmd.AnswerQuestion{CallID: q.CallID, Digest: q.Digest, Approved: true})
		}},
		"arguments that the person changed otherwise": {changed: `{"amount":1000}`, proof: func(r *rig, q event.InputRequestedData) *event.Proof {
			return signed(r, "team_0123456789abcdef", cmd.AnswerQuestion{
				CallID: q.CallID, Digest: signature.Digest(q.Tool, []byte(`{"amount":1}`)), Shown: q.Digest, Arguments: []byte(`{"amount":1}`), Approved: true,
			})
		}},
		"the person's change": {runs: true, changed: `{"amount":1}`, proof: func(r *rig, q event.InputRequestedData) *event.Proof {
			return signed(r, "team_0123456789abcdef", cmd.AnswerQuestion{
				CallID: q.CallID, Digest: signature.Digest(q.Tool, []byte(`{"amount":1}`)), Shown: q.Digest, Arguments: []byte(`{"amount":1}`), Approved: true,
			})
		}},
		"the person's approval": {runs: true, proof: func(r *rig, q event.InputRequestedData) *event.Proof {
			return signed(r, "team_0123456789abcdef", cmd.AnswerQuestion{CallID: q.CallID, Digest: q.Digest, Approved: true})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newMember(t, scripted.Sequence(
				scripted.Stream(scripted.Calls(9, pay("call_0", 5))), scripted.Stream(scripted.Text("done"))), nil)
			r.signatures = verifier
			r.worker("w1", nil)
			run := r.ask("pay")
			r.until(run, event.JobSuspended)
			q := r.questions(1)[0]
			r.release <- struct{}{}
			d := event.InputAnsweredData{
				InputID: q.InputID, RunID: q.RunID, ExecutionID: q.ExecutionID, CommandID: "answer", Decision: event.DecisionApprove,
				By: "alice", CallID: q.CallID, Tool: q.Tool, Proof: c.proof(r, q),
			}
			if c.changed != "" {
				d.Decision, d.Arguments = event.DecisionModify, json.RawMessage(c.changed)
			}
			r.forge(d)
			events := r.until(run, event.RunCompleted)
			if c.runs {
				require.EqualValues(t, 1, r.pays.Load())
				return
			}
			require.Zero(t, r.pays.Load())
			require.Zero(t, servicetest.Count(events, event.ToolCompleted))
			require.Equal(t, string(fault.ToolDenied), all[event.ToolFailedData](t, events)[0].Code)
		})
	}
}

// forge appends an event as a thief with the key of a worker can, and has the run looked at.
func (r *rig) forge(d event.Data) {
	r.T.Helper()
	end, err := r.Log.Last(r.Ctx, r.ref)
	require.NoError(r.T, err)
	w := r.Log.WriterAfter(r.ref, end, func(*eventlog.Entry) {})
	e, err := event.New(r.ref, fmt.Sprint("forged-", end.Seq), "thief", time.Now(), d)
	require.NoError(r.T, err)
	require.NoError(r.T, w.Append(r.Ctx, func() ([]event.Event, error) {
		if w.Seq() > end.Seq {
			return nil, nil
		}
		return []event.Event{e}, nil
	}))
	r.command(cmd.CheckDeadlines, fmt.Sprint("look-", end.Seq), nil)
}
