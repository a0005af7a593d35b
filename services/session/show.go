package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/plan"
)

// showEnvelope bounds the size of an answer beside its runs.
const showEnvelope = 8 << 10

var stepStates = map[plan.State]string{
	plan.Waiting: "waiting", plan.Running: "running", plan.Done: "completed", plan.Failed: "failed", plan.Cancelled: "cancelled",
}

// show answers with a session and its runs behind those that the caller has, as many as fit into a message of the bus and
// at least one.
func (d *responder) show(ctx context.Context, in cmd.SessionRequest) (api.SessionPart, error) {
	f, err := foldLog(ctx, d.log, sessionLog(in.Tenant, in.Session))
	if err != nil {
		return api.SessionPart{}, err
	}
	st := &f.state
	if st.Seq == 0 {
		return api.SessionPart{}, fault.New(fault.SessionNotFound)
	}
	out := api.SessionPart{SessionDetail: api.SessionDetail{
		SessionID: in.Session.String(), Status: api.SessionOpen, Dialect: st.Dialect, Language: st.Preferences.Language,
		CreatedAt: st.Created, UpdatedAt: st.Updated, LastSeq: st.Seq, Stats: st.Stats(st.Updated), Runs: []api.RunDetail{},
	}}
	if st.Closed {
		out.Status = api.SessionClosed
	}
	room, runs := int(d.conn.NATS().MaxPayload())-showEnvelope, st.Runs()
	for _, run := range runs[min(max(in.Skip, 0), len(runs)):] {
		one := detail(run)
		b, err := json.Marshal(one)
		if err != nil {
			return api.SessionPart{}, fmt.Errorf("encode a run: %w", err)
		}
		if room -= len(b) + 1; room < 0 && len(out.Runs) > 0 {
			out.More = true
			break
		}
		out.Runs = append(out.Runs, one)
	}
	return out, nil
}

func detail(r *conversation.Run) api.RunDetail {
	d := api.RunDetail{
		RunID: r.ID, ExecutionID: r.ExecutionID, MessageID: r.MessageID, Mode: r.Spec.Mode, Status: string(r.Status),
		Attempt: r.Attempt(), Content: r.Content, Answer: r.Answer, Outcome: r.Outcome,
	}
	if r.Pipeline == nil {
		return d
	}
	d.Stage = string(r.Pipeline.Phase)
	for _, t := range r.Pipeline.Tasks {
		d.Tasks = append(d.Tasks, api.StepDetail{
			TaskID: t.ID, Title: t.Title, Status: stepStates[t.State], Attempt: t.Attempt,
			Dependencies: t.Dependencies, Output: t.Output, Error: t.Error,
		})
	}
	return d
}
