package anthropic

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// received is a content block that is still arriving, or has arrived.
type received struct {
	index     int64
	kind      string // typeText, typeToolUse, typeThinking, or another one
	id, name  string
	start     string // arguments in the start of the block
	pieces    []byte // later arguments; they replace start
	text      int    // bytes of a text
	thought   []byte
	signature string
	raw       json.RawMessage // a block of another kind
}

// arguments of a call.
func (b *received) arguments() string {
	if len(b.pieces) > 0 {
		return upstream.Join(b.pieces)
	}
	return b.start
}

// whole returns a block that is neither text nor a call as the provider wants it back.
func (b *received) whole() (json.RawMessage, error) {
	if b.kind == typeThinking {
		return encode(thinking{Type: typeThinking, Thinking: string(b.thought), Signature: b.signature})
	}
	if !upstream.Whole(b.pieces) {
		return b.raw, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b.raw, &members); err != nil {
		return nil, upstream.BadReply("content block: %w", err)
	}
	members["input"] = b.pieces
	return encode(members)
}

func encode(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, upstream.BadReply("encode block: %w", err)
	}
	return raw, nil
}
