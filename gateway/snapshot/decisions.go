package snapshot

import (
	"cmp"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// answered keeps who has decided what, and the plan as it was changed.
func answered(t *talk, e event.Event, d fields) {
	if d.Steps != nil {
		t.of(d.RunID, itemPlan, func(p *item) {
			if p.Status == stateWaiting {
				p.Steps = planOf(*d.Steps)
			}
		})
	}
	t.decided(e, d, d.Decision)
}

// expired keeps that a question has ended without an answer.
func expired(t *talk, e event.Event, d fields) {
	code := "expired"
	if d.Withdrawn {
		code = "withdrawn"
	}
	t.decided(e, d, code)
}

// decided adds the end of a question. The outcome of a client's tool shows at the tool itself.
func (t *talk) decided(e event.Event, d fields, code string) {
	if d.Scope == event.ScopeClientTool {
		return
	}
	scope := "plan"
	if d.Tool != "" {
		scope = "tool"
	}
	t.add(item{SnapshotItem: wire.SnapshotItem{
		Kind: itemDecision, ID: d.InputID, Run: d.RunID, Name: ptr(d.Tool), Code: ptr(code), By: d.By,
		Scope: cmp.Or(d.Scope, scope), At: e.Time.UnixMilli(),
	}, text: []byte(d.Feedback)})
}
