package event

import "time"

// What becomes of a run that has used up its budget.
const (
	BudgetStop = "stop" // it fails with BUDGET_EXCEEDED
	BudgetAsk  = "ask"  // people are asked whether it gets as much once more
)

// Budget is what one run may use up. A zero field does not bound anything.
type Budget struct {
	Tokens     int64   `json:"tokens,omitempty"`      // read and written by models, as far as their providers count them
	CostUSD    float64 `json:"cost_usd,omitempty"`    // of the models that have a price
	ToolCalls  int     `json:"tool_calls,omitempty"`  // begun
	Seconds    int64   `json:"seconds,omitempty"`     // while workers have it; waiting for people does not count
	OnExceeded string  `json:"on_exceeded,omitempty"` // stop (absent), ask
	// AskSeconds is how long a question stays open; 0 = until somebody answers.
	AskSeconds int `json:"ask_seconds,omitempty"`
}

// BudgetUse says how much of its budget a run has used up when it got to its end.
type BudgetUse struct {
	Resource  string  `json:"resource"` // what was used up first: tokens, cost_usd, tool_calls, seconds; time of a quota
	Tokens    int64   `json:"tokens"`
	CostUSD   float64 `json:"cost_usd"`
	ToolCalls int     `json:"tool_calls"`
	Seconds   int64   `json:"seconds"`
	Limit     Budget  `json:"limit"`   // what it had in all
	Granted   int     `json:"granted"` // how often people have given it as much once more

	// Quota is set if what is used up is not the run's budget but what a tenant or
	// principal may use in a day; Resource is a resource of quotas then.
	Quota *QuotaUse `json:"quota,omitempty"`
}

// QuotaUse is what of a day's quota was used when a run came to its end.
type QuotaUse struct {
	Scope string  `json:"scope"` // whose it is: tenant, principal
	Day   string  `json:"day"`   // YYYY-MM-DD, in UTC
	Limit float64 `json:"limit"` // dollars of cost_usd, seconds of time, else pieces
	Used  float64 `json:"used"`  // all runs together
}

// The resources of a budget.
const (
	BudgetTokens    = "tokens"
	BudgetCost      = "cost_usd"
	BudgetToolCalls = "tool_calls"
	BudgetSeconds   = "seconds"
)

// Bounds reports whether the budget bounds anything.
func (b Budget) Bounds() bool {
	return b.Tokens > 0 || b.CostUSD > 0 || b.ToolCalls > 0 || b.Seconds > 0
}

// Within returns the lower of both in every field: what a client asks for within what
// the server allows. A run stops if either wants that.
func (b Budget) Within(limit Budget) Budget {
	out := Budget{
		Tokens: lower(b.Tokens, limit.Tokens), CostUSD: lower(b.CostUSD, limit.CostUSD),
		ToolCalls: lower(b.ToolCalls, limit.ToolCalls), Seconds: lower(b.Seconds, limit.Seconds),
		OnExceeded: limit.OnExceeded, AskSeconds: limit.AskSeconds,
	}
	if !limit.Bounds() || b.OnExceeded == BudgetStop {
		out.OnExceeded = b.OnExceeded
	}
	return out
}

// lower returns the lower of two bounds, of which zero is none. What is less than
// nothing is nothing said.
func lower[N int | int64 | float64](a, b N) N {
	switch {
	case a <= 0:
		return max(b, 0)
	case b <= 0:
		return a
	}
	return min(a, b)
}

// Times returns n such budgets together.
func (b Budget) Times(n int) Budget {
	b.Tokens, b.CostUSD, b.ToolCalls, b.Seconds = b.Tokens*int64(n), b.CostUSD*float64(n), b.ToolCalls*n, b.Seconds*int64(n)
	return b
}

// Time is Seconds as a duration.
func (b Budget) Time() time.Duration { return time.Duration(b.Seconds) * time.Second }
