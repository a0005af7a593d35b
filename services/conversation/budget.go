package conversation

import (
	"fmt"
	"math"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation/usage"
)

// spending is what a run has used of its budget, and what people were asked about it.
type spending struct {
	Budget event.Budget // limits of the run; zero: unlimited

	Busy   time.Duration // see Worked
	Clocks clocks

	asked []*Question // the questions about its budget, or a day's quota
}

// Worked is how long workers have been busy with the run, by the times in the log. It is counted only if the budget bounds it.
func (b *spending) Worked() time.Duration { return b.Busy }

// granted counts how often people have renewed the run's budget.
func (b *spending) granted() int {
	n := 0
	for _, q := range b.asked {
		if q.Quota == nil && q.approved() {
			n++
		}
	}
	return n
}

// Granted returns how often people have allowed the run to continue over a daily limit.
func (b *spending) Granted(resource, scope, day string) int {
	n := 0
	for _, q := range b.asked {
		if q.Quota != nil && q.Resource == resource && q.Quota.Scope == scope && q.Quota.Day == day && q.approved() {
			n++
		}
	}
	return n
}

// Asking reports whether a question about the run's budget, or a day's quota, is open.
func (b *spending) Asking() bool { return b.question() != nil && !b.question().Over }

// used returns the usage of a run with the tally, with the known tokens and cost.
func (b *spending) used(t usage.Tally) event.BudgetUse {
	n := b.granted()
	return event.BudgetUse{
		Tokens: t.Input + t.Output, CostUSD: t.Cost, ToolCalls: t.Tools, Seconds: int64(b.Busy / time.Second),
		Limit: b.Budget.Times(n + 1), Granted: n,
	}
}

// exceeded returns the usage that keeps a run with the tally from the model, or from a call of a tool.
func (b *spending) exceeded(t usage.Tally, tool bool) (use event.BudgetUse, over bool) {
	use = b.used(t)
	limit := use.Limit
	switch {
	case limit.Tokens > 0 && use.Tokens >= limit.Tokens:
		use.Resource = event.BudgetTokens
	case limit.CostUSD > 0 && use.CostUSD >= limit.CostUSD:
		use.Resource = event.BudgetCost
	case limit.Seconds > 0 && b.Busy >= limit.Time():
		use.Resource = event.BudgetSeconds
	case tool && limit.ToolCalls > 0 && use.ToolCalls >= limit.ToolCalls:
		use.Resource = event.BudgetToolCalls
	}
	return use, use.Resource != ""
}

// question returns the newest question about the run's budget, or nil.
func (b *spending) question() *Question {
	if len(b.asked) == 0 {
		return nil
	}
	return b.asked[len(b.asked)-1]
}

// Expiring returns the open question about the budget if it has a timeout.
func (b *spending) Expiring() (inputID string, ok bool) {
	q := b.question()
	if q == nil || !q.expires() {
		return "", false
	}
	return q.ID, true
}

// TimeLeft is how long workers may still be busy with the run before it has to be
// stopped, or people are asked; ok is false if nothing bounds it.
func (b *spending) TimeLeft() (left time.Duration, ok bool) {
	if b.Budget.Seconds <= 0 {
		return math.MaxInt64, false
	}
	return max(0, b.Budget.Times(b.granted()+1).Time()-b.Busy), true
}

// Asks reports whether people are asked when the run has used up its budget.
func (b *spending) Asks() bool { return b.Budget.OnExceeded == event.BudgetAsk }

// quotaRefused returns why the run ends if people have not let it continue over a day's quota, else nil.
func (b *spending) quotaRefused() *fault.Fault {
	q := b.question()
	if q == nil || q.Quota == nil || !q.rejected() && !q.Expired {
		return nil
	}
	return fault.Newf(fault.QuotaExceeded, "The %s of the %s for %s are used up (%g of %g), and the run was not allowed to continue.",
		quotaNames[q.Resource], q.Quota.Scope, q.Quota.Day, q.Quota.Used, q.Quota.Limit)
}

// quotaNames are the names of the resources with a daily quota.
var quotaNames = map[string]string{
	audit.Tokens.String(): "tokens", audit.CostUSD.String(): "US dollars",
	audit.ToolCalls.String(): "tool calls", audit.Time.String(): "seconds of work",
}

// BudgetQuestion is what people are asked.
func BudgetQuestion(use event.BudgetUse) string {
	return "The run has used up its budget: " + usedUp(use) + ". May it have as much once more?"
}

// BudgetFault explains which part of a budget is used up.
func BudgetFault(use event.BudgetUse) *fault.Fault {
	if use.Resource == "" {
		return fault.New(fault.BudgetExceeded)
	}
	return fault.Newf(fault.BudgetExceeded, "The run has used up its budget: %s. Ask for less at a time, or ask the operator for a larger budget.", usedUp(use))
}

func usedUp(use event.BudgetUse) string {
	switch use.Resource {
	case event.BudgetTokens:
		return fmt.Sprintf("%d of %d tokens", use.Tokens, use.Limit.Tokens)
	case event.BudgetCost:
		return fmt.Sprintf("$%.4f of $%.4f", use.CostUSD, use.Limit.CostUSD)
	case event.BudgetToolCalls:
		return fmt.Sprintf("%d of %d tool calls", use.ToolCalls, use.Limit.ToolCalls)
	}
	return fmt.Sprintf("%d of %d seconds", use.Seconds, use.Limit.Seconds)
}
