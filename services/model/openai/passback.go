package openai

import (
	"encoding/json"
	"maps"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// Members of a message in which servers send reasoning as text.
const (
	memberReasoningContent = "reasoning_content"
	memberReasoning        = "reasoning"
)

// passBack is what a server sends along with text and calls, and expects back with them.
type passBack struct {
	Member  string                       `json:"reasoning,omitempty"` // the member that held the reasoning, whose text is in the message
	Details []json.RawMessage            `json:"details,omitempty"`   // reasoning_details
	Message json.RawMessage              `json:"message,omitempty"`   // extra_content of the message
	Calls   map[int]json.RawMessage      `json:"calls,omitempty"`     // extra_content of the calls, by their places
	joined  []map[string]json.RawMessage // the details so far
}

func (b *passBack) message(extra json.RawMessage) {
	if len(extra) > 0 && string(extra) != "null" {
		b.Message = extra
	}
}

func (b *passBack) call(n int, extra json.RawMessage) {
	if len(extra) == 0 {
		return
	}
	if b.Calls == nil {
		b.Calls = map[int]json.RawMessage{}
	}
	b.Calls[n] = extra
}

// details adds pieces of reasoning_details. Consecutive pieces of one block, as their index and type say, become one: their
// texts concatenate, and later values of other members replace earlier ones. Source: OpenRouter's documentation, "Preserving
// reasoning blocks".
func (b *passBack) details(pieces []json.RawMessage) {
	for _, raw := range pieces {
		var piece map[string]json.RawMessage
		if json.Unmarshal(raw, &piece) != nil || len(b.joined) >= maxDetails {
			continue
		}
		if n := len(b.joined); n > 0 && continues(b.joined[n-1], piece) {
			join(b.joined[n-1], piece)
			continue
		}
		b.joined = append(b.joined, piece)
	}
}

// maxDetails bounds the blocks of one message.
const maxDetails = 1024

func continues(a, b map[string]json.RawMessage) bool {
	_, streamed := b["index"]
	_, encrypted := b["data"]
	return streamed && !encrypted && string(a["index"]) == string(b["index"]) && string(a["type"]) == string(b["type"])
}

func join(a, b map[string]json.RawMessage) {
	for name, value := range b {
		if string(value) == "null" {
			continue
		}
		if name == "text" || name == "summary" {
			var before, after string
			if json.Unmarshal(value, &after) == nil && json.Unmarshal(a[name], &before) == nil {
				value, _ = json.Marshal(before + after) //nolint:errchkjson // strings
			}
		}
		a[name] = value
	}
}

// pack returns what goes into the log; nil if the server wants nothing back.
func (b *passBack) pack(provider string, calls bool) (*event.PassBack, error) {
	for _, d := range b.joined {
		raw, err := json.Marshal(d)
		if err != nil {
			return nil, upstream.BadReply("reasoning details: %w", err)
		}
		b.Details = append(b.Details, raw)
	}
	if b.Message == nil && (!calls || b.Member == "" && len(b.Details) == 0 && len(b.Calls) == 0) {
		return nil, nil
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, upstream.BadReply("parts that the server wants back: %w", err)
	}
	return upstream.PassBack(provider, raw)
}

// give returns to the server what it sent with a message.
func give(to *message, m model.Message, provider string) {
	if m.PassBack == nil || m.PassBack.Provider != provider {
		return
	}
	var b passBack
	if json.Unmarshal(m.PassBack.Data, &b) != nil {
		return
	}
	to.ExtraContent = b.Message
	if len(m.ToolCalls) == 0 {
		return // DeepSeek refuses the reasoning of messages without calls
	}
	switch b.Member {
	case memberReasoningContent:
		to.ReasoningContent = m.Reasoning
	case memberReasoning:
		to.Reasoning = m.Reasoning
	}
	to.ReasoningDetails = b.Details
	for i, extra := range maps.All(b.Calls) {
		if i < len(to.ToolCalls) {
			to.ToolCalls[i].ExtraContent = extra
		}
	}
}
