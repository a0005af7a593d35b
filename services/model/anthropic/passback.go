package anthropic

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// passBack is the order of the blocks of a message that has more than text and calls: thinking with its signature, and blocks
// of tools that the provider runs. Source: Anthropic's documentation, "Extended thinking", which wants them back unchanged,
// before the calls that follow from them.
type passBack struct {
	Blocks []kept `json:"blocks"`
}

// kept is one block: itself, or its place in the message.
type kept struct {
	Text int             `json:"text,omitempty"` // the next bytes of the message's text
	Call int             `json:"call,omitempty"` // the n-th call, from 1
	Raw  json.RawMessage `json:"raw,omitempty"`  // the block as it came
}

// pack returns what goes into the log; nil if the message has nothing but text and calls.
func pack(blocks []*received, provider string) (*event.PassBack, error) {
	var b passBack
	calls, thoughts, more := 0, false, false
	for _, r := range blocks {
		switch r.kind {
		case typeText:
			b.Blocks = append(b.Blocks, kept{Text: r.text})
		case typeToolUse:
			calls++
			b.Blocks = append(b.Blocks, kept{Call: calls})
		default:
			raw, err := r.whole()
			if err != nil {
				return nil, err
			}
			thinks := r.kind == typeThinking || r.kind == typeRedacted
			thoughts, more = thoughts || thinks, more || !thinks
			b.Blocks = append(b.Blocks, kept{Raw: raw})
		}
	}
	if !more && (!thoughts || calls == 0) { // thinking matters for the calls that follow from it
		return nil, nil
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, upstream.BadReply("blocks that the provider wants back: %w", err)
	}
	return upstream.PassBack(provider, raw)
}

// blocksOf returns the blocks of an assistant's message: those that the provider sent, if it is this one, or its text and
// calls.
func blocksOf(m model.Message, provider string) []block {
	if m.PassBack != nil && m.PassBack.Provider == provider {
		var b passBack
		if json.Unmarshal(m.PassBack.Data, &b) == nil {
			if out, ok := b.fill(m); ok {
				return out
			}
		}
	}
	var out []block
	if !upstream.Blank(m.Content) {
		out = append(out, text(m.Content))
	}
	for i := range m.ToolCalls {
		out = append(out, callOf(m, i))
	}
	return out
}

// fill puts the message's text and calls into their places. It reports false if they are not those of the blocks.
func (b *passBack) fill(m model.Message) (out []block, ok bool) {
	rest, calls, last := m.Content, 0, -1
	for _, k := range b.Blocks {
		switch {
		case k.Raw != nil:
			out = append(out, block{raw: k.Raw})
		case k.Call > 0:
			if calls++; k.Call > len(m.ToolCalls) {
				return nil, false
			}
			out = append(out, callOf(m, k.Call-1))
		case k.Text > len(rest):
			return nil, false
		default:
			piece := rest[:k.Text]
			rest = rest[k.Text:]
			if !upstream.Blank(piece) {
				last = len(out)
				out = append(out, text(piece))
			}
		}
	}
	if rest != "" && last >= 0 { // half a character that was held back
		out[last].Text += rest
	}
	return out, calls == len(m.ToolCalls)
}

func callOf(m model.Message, i int) block {
	c := m.ToolCalls[i]
	return block{Type: typeToolUse, ID: upstream.LongID(c.ID), Name: c.Name, Input: upstream.History(c.Arguments)}
}
