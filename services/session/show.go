package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/plan"
)

// showEnvelope bounds the size of an answer excluding its runs.
const showEnvelope = 8 << 10

var stepStates = map[plan.State]string{
	plan.Waiting: "waiting", plan.Running: "running", plan.Done: "completed", plan.Failed: "failed", plan.Cancelled: "cancelled",
}

// show answers with a session and the next part of its runs that fits into a message of the bus.
func (d *responder) show(ctx context.Context, in cmd.SessionRequest) (api.SessionPart, error) {
	f, err := foldLog(ctx, d.log, sessionLog(in.Tenant, in.Session))
	if err != nil {
		return api.SessionPart{}, err
	}
	st := &f.state
	if st.Seq == 0 {
		return api.SessionPart{}, fault.New(fault.SessionNotFound)
	}
	if !d.access.MaySee(in.Tenant, st.Owner(), access.Person{Subject: in.Principal, Operator: in.All}) {
		return api.SessionPart{}, fault.New(fault.SessionNotFound)
	}
	out := api.SessionPart{SessionDetail: api.SessionDetail{
		SessionID: in.Session.String(), Status: api.SessionOpen, Dialect: st.Dialect, Language: st.Preferences.Language,
		CreatedAt: st.Created, UpdatedAt: st.Updated, LastSeq: st.Seq, Stats: st.Stats(st.Updated), Runs: []api.RunDetail{},
	}}
	if st.Closed {
		out.Status = api.SessionClosed
	}
	runs := st.Runs()
	skip := min(max(in.Skip, 0), len(runs))
	out.Runs = make([]api.RunDetail, 0, len(runs)-skip)
	for _, run := range runs[skip:] {
		out.Runs = append(out.Runs, detail(run))
	}
	err = fit(&out, in.Steps, int(d.conn.NATS().MaxPayload())-showEnvelope)
	return out, err
}

// fit cuts the answer to a number of bytes. It drops the steps of the first run that the caller has, and then all that
// follows the first run or step that does not fit, but never everything.
func fit(p *api.SessionPart, has, room int) error {
	runs := p.Runs
	for i := range runs {
		run := &runs[i]
		steps := run.Steps
		if i == 0 {
			steps = steps[min(max(has, 0), len(steps)):]
		}
		run.Steps = nil
		size, err := sizeOf(run)
		if err != nil {
			return err
		}
		if room -= size + len(`"steps":[],`); room < 0 && i > 0 {
			p.Runs, p.More = runs[:i], true
			return nil
		}
		for n := range steps {
			if size, err = sizeOf(&steps[n]); err != nil {
				return err
			}
			if room -= size; room < 0 && i+n > 0 {
				run.Steps, p.Runs, p.More, p.Cut = steps[:n], runs[:i+1], true, true
				return nil
			}
		}
		run.Steps = steps
	}
	return nil
}

// sizeOf returns the bytes of a value in a list.
func sizeOf(v any) (int, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encode a part of a session: %w", err)
	}
	return len(b) + 1, nil
}

func detail(r *conversation.Run) api.RunDetail {
	d := api.RunDetail{
		RunID: r.ID, ExecutionID: r.ExecutionID, MessageID: r.MessageID, Mode: r.Spec.Mode, Status: string(r.Status),
		Attempt: r.Attempt(), Content: r.Content, Answer: r.Answer, Outcome: r.Outcome,
	}
	if r.Plan == nil {
		return d
	}
	d.Stage = string(r.Plan.Phase)
	for _, t := range r.Plan.Steps {
		d.Steps = append(d.Steps, api.StepDetail{
			StepID: t.ID, Title: t.Title, Status: stepStates[t.State], Attempt: t.Attempt,
			Dependencies: t.Dependencies, Output: t.Output, Error: t.Error,
		})
	}
	return d
}
