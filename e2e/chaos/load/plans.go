package load

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/chaos/verify"
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// plans are two devices in one session of the MyAgent dialect. Each plan is put to both,
// and both answer at once: one allows it, the other does not.
type plans struct {
	l      *Load
	tenant string
	who    string
	first  *client.MyAgent
	second *client.MyAgent
	asked  []string
	ended  map[string]int
}

func newPlans(ctx context.Context, l *Load, tenant string, i int) *plans {
	p := &plans{l: l, tenant: tenant, who: l.nameOf(tenant, "plans", i), ended: map[string]int{}}
	confirm := true
	opt := sdk.Options{
		URL: p.url(i), Token: site.KeyOf(tenant), ClientID: p.who + "-a", ConfirmPlan: &confirm,
		Next: p.turns(i + 1),
	}
	p.first = client.OpenMyAgent(l.t, opt)
	f, err := p.first.Await(ctx, func(f sdk.Frame) bool { return f.Event == myagent.AgentSessionCreated })
	if err != nil {
		l.t.Errorf("%s: %v", p.who, err)
		return p
	}
	opt.Session, opt.ClientID, opt.Next = f.SessionID, p.who+"-b", p.turns(i)
	p.second = client.OpenMyAgent(l.t, opt)
	return p
}

func (p *plans) url(i int) string {
	addrs := p.l.addrs()
	return "ws://" + addrs[i%len(addrs)] + "/ws/session"
}

// turns gives one gateway after the other.
func (p *plans) turns(from int) func() string {
	return func() string {
		from++
		return p.url(from - 1)
	}
}

func (p *plans) work(ctx context.Context, stop <-chan struct{}) error {
	answered := map[string]bool{}
	for n := 0; !stopped(stop); n++ {
		began := time.Now()
		id := p.first.Message(fmt.Sprintf("%s asks %d", p.who, n), nil)
		p.asked = append(p.asked, id)
		for p.ended[id] == 0 {
			over := client.EndOf(id)
			f, err := p.first.Await(ctx, func(f sdk.Frame) bool {
				return over(f) || f.Event == myagent.AgentUserConfirm && !answered[f.StepID]
			})
			if err != nil {
				return fmt.Errorf("session %s at %d: message %s: %w", p.first.Session(), p.first.Seq(), id, err)
			}
			if f.Event == myagent.AgentUserConfirm {
				answered[f.StepID] = true
				p.second.Respond(f.StepID, map[string]any{"confirmed": false, "feedback": "no"})
				p.first.Respond(f.StepID, map[string]any{"confirmed": true})
				continue
			}
			p.ended[id]++
		}
		p.l.ended(p.who+" in "+p.first.Session(), began)
	}
	return nil
}

func (p *plans) report() verify.Report {
	r := verify.Report{
		Who: p.who, Tenant: p.tenant, Kind: "MyAgent", Asked: p.asked, Ended: p.ended, Loose: loosePlan,
		Logs: []string{p.tenant + ".session." + p.first.Session()},
	}
	for _, f := range p.first.Frames() {
		r.Seen = append(r.Seen, verify.Seen{Seq: f.Seq, Raw: string(f.Raw)})
	}
	for _, d := range []*client.MyAgent{p.first, p.second} {
		if d == nil {
			continue
		}
		losses, gaps := d.Losses()
		r.Returns = max(r.Returns, losses)
		for _, err := range gaps {
			r.Gaps = append(r.Gaps, p.who+": "+err.Error())
		}
	}
	session, last := p.first.Session(), p.first.Seq()
	r.Again = func(ctx context.Context, addr string) ([]verify.Seen, error) {
		d := client.OpenMyAgent(p.l.t, sdk.Options{URL: "ws://" + addr + "/ws/session", Token: site.KeyOf(p.tenant), Session: session})
		_, err := d.Await(ctx, func(f sdk.Frame) bool { return f.Seq >= last })
		var out []verify.Seen
		for _, f := range d.Frames() {
			out = append(out, verify.Seen{Seq: f.Seq, Raw: string(f.Raw)})
		}
		return out, err
	}
	return r
}

// loosePlan tells pieces of texts.
func loosePlan(raw string) (of, text string, loose bool) {
	var f sdk.Frame
	if json.Unmarshal([]byte(raw), &f) != nil || f.Event != myagent.AgentPartialAnswer {
		return "", "", false
	}
	return f.Meta().MessageID + f.StepID, f.Text(), true
}
