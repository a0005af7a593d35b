package event

import "encoding/json"

// The canonical types of a model's reasoning.
const (
	ReasoningDelta     Type = "reasoning.delta"
	ReasoningCompleted Type = "reasoning.completed"
)

// ReasoningDeltaData carries the next piece of what a model thinks before or between the texts of a message. It is never a
// part of the answer. Consecutive deltas of a message may be merged by concatenation.
type ReasoningDeltaData struct {
	MessageID   string `json:"message_id"` // the message that follows from it
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt"`
	Text        string `json:"text"`
	Part
}

// ReasoningCompletedData holds the whole reasoning of a message. It comes before the message's message.completed, and only
// if the model has shown its reasoning or wants something back. A discarded message discards it, too.
type ReasoningCompletedData struct {
	MessageID   string    `json:"message_id"`
	RunID       string    `json:"run_id"`
	ExecutionID string    `json:"execution_id"`
	Attempt     int       `json:"attempt"`
	Content     string    `json:"content"` // the concatenation of the deltas; empty if the provider shows none of it
	PassBack    *PassBack `json:"pass_back,omitempty"`
	Part
}

// PassBack is what a provider wants back, unchanged, with the message that it has sent: signatures, encrypted reasoning. It
// goes to the same provider only. Gateways remove it from events that they show people.
type PassBack struct {
	Provider string          `json:"provider"` // provider and host, such as "anthropic@api.anthropic.com"
	Data     json.RawMessage `json:"data"`     // an object, whose members only that provider's client knows; bounded as a text
}

// Size returns the bytes that go back with a message that has this reasoning.
func (p *PassBack) Size(reasoning string) int {
	if p == nil {
		return 0
	}
	return len(p.Data) + len(reasoning)
}

// MaxPassBack bounds the data of a PassBack, in bytes.
const MaxPassBack = 64 << 10
