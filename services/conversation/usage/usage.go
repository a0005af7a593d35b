// Package usage adds up the tokens, costs and calls of a conversation.
package usage

import "github.com/waggle-dev/waggle/proto-schemas/event"

// Tally adds up the consumption of a job. Its JSON form is part of stored states.
type Tally struct {
	Calls, Tools  int // messages of the model, tool calls
	Recorded      int // messages whose tokens are known
	Priced        int // messages whose cost is known
	Input, Output int64
	Cost          float64 // US dollars
	Details       event.TokenDetails
	ByTool        []event.ToolUse
}

// Record adds the tokens, and the cost if it is known, of one message of the model.
func (t *Tally) Record(d event.UsageRecordedData) {
	t.Recorded++
	t.Input += d.InputTokens
	t.Output += d.OutputTokens
	t.Details = t.Details.Plus(d.TokenDetails)
	if d.CostUSD != nil {
		t.Priced++
		t.Cost += *d.CostUSD
	}
}

// Use adds a call of a tool.
func (t *Tally) Use(tool string) {
	t.Tools++
	for i := range t.ByTool {
		if t.ByTool[i].Name == tool {
			t.ByTool[i].Calls++
			return
		}
	}
	t.ByTool = append(t.ByTool, event.ToolUse{Name: tool, Calls: 1})
}

// Add adds another tally, without its uses of each tool.
func (t *Tally) Add(o Tally) {
	t.Calls, t.Tools = t.Calls+o.Calls, t.Tools+o.Tools
	t.Recorded, t.Priced = t.Recorded+o.Recorded, t.Priced+o.Priced
	t.Input, t.Output, t.Cost, t.Details = t.Input+o.Input, t.Output+o.Output, t.Cost+o.Cost, t.Details.Plus(o.Details)
}

// Usage omits values that are unknown for some message.
func (t *Tally) Usage() event.Usage {
	u := event.Usage{LLMCalls: t.Calls, ToolCalls: t.Tools}
	if t.Calls > 0 && t.Recorded >= t.Calls {
		u.InputTokens, u.OutputTokens, u.TokenDetails = &t.Input, &t.Output, t.Details
	}
	if t.Calls > 0 && t.Priced >= t.Calls {
		u.CostUSD = &t.Cost
	}
	return u
}

// Totals count for a whole log. Their JSON form is part of stored states.
type Totals struct {
	Tally           `json:"Tally"`
	Messages, Steps int
	Begun           int // messages of the model, also those that were not finished
}

// TotalsOf returns the totals with which an imported conversation continues.
func TotalsOf(messages, steps int, u event.Usage) Totals {
	t := Totals{Messages: messages, Steps: steps, Begun: u.LLMCalls}
	t.Calls, t.Tools = u.LLMCalls, u.ToolCalls
	if u.InputTokens != nil && u.OutputTokens != nil {
		t.Recorded, t.Input, t.Output, t.Details = u.LLMCalls, *u.InputTokens, *u.OutputTokens, u.TokenDetails
	}
	if u.CostUSD != nil {
		t.Priced, t.Cost = u.LLMCalls, *u.CostUSD
	}
	return t
}

// Usage counts every model call that has begun. Providers report the tokens of finished calls only,
// so the tokens are a lower bound.
func (t *Totals) Usage() event.Usage {
	u := t.Tally.Usage()
	u.LLMCalls = max(t.Begun, t.Calls)
	if t.Calls == 0 {
		u.InputTokens, u.OutputTokens = &t.Input, &t.Output
	}
	return u
}
