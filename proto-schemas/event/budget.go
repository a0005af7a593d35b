package event

import "time"

// Consequences for a run that has used up its budget.
const (
	BudgetStop = "stop" // the run fails with BUDGET_EXCEEDED
	BudgetAsk  = "ask"  // people decide whether the run gets the same amount once more
)

// Budget limits the resources of one run. A zero field means unlimited.
type Budget struct {
	Tokens     int64   `json:"tokens,omitempty"`      // read and written by models, as far as their providers count them
	CostUSD    float64 `json:"cost_usd,omitempty"`    // of the models that have a price
	ToolCalls  int     `json:"tool_calls,omitempty"`  // begun
	Seconds    int64   `json:"seconds,omitempty"`     // of workers' time; waiting for people does not count
	OnExceeded string  `json:"on_exceeded,omitempty"` // stop (absent), ask
	// AskSeconds is the lifetime of a question; 0 = until an answer.
	AskSeconds int `json:"ask_seconds,omitempty"`
}

// BudgetUse is the part of its budget that a run had used when it reached the limit.
type BudgetUse struct {
	Resource  string  `json:"resource"` // the exhausted resource: tokens, cost_usd, tool_calls, seconds; time of a quota
	Tokens    int64   `json:"tokens"`
	CostUSD   float64 `json:"cost_usd"`
	ToolCalls int     `json:"tool_calls"`
	Seconds   int64   `json:"seconds"`
	Limit     Budget  `json:"limit"`   // the whole budget
	Granted   int     `json:"granted"` // how often people have granted the same amount once more

	// Quota is set if the run reached a tenant's or principal's quota of a day instead of its budget; Resource is a
	// resource of quotas then.
	Quota *QuotaUse `json:"quota,omitempty"`
}

// QuotaUse is the used part of a day's quota when a run reached it.
type QuotaUse struct {
	Scope string  `json:"scope"` // owner of the quota: tenant, principal
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

// Within returns the lower of both in every field: the client's budget within the server's limits. A run stops if
// either says so.
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

// lower returns the lower of two bounds; zero and negative bounds mean unlimited.
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
