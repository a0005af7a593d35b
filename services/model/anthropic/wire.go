package anthropic

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// The members of the messages protocol that Waggle uses. Source: Anthropic's API reference, "Create a Message" and
// "Streaming Messages".
type (
	request struct {
		Model      string      `json:"model"`
		MaxTokens  int         `json:"max_tokens"`
		System     []block     `json:"system,omitempty"`
		Messages   []message   `json:"messages"`
		Tools      []tool      `json:"tools,omitempty"`
		ToolChoice *toolChoice `json:"tool_choice,omitempty"`
		Stream     bool        `json:"stream"`
	}

	message struct {
		Role    string  `json:"role"` // user, assistant
		Content []block `json:"content"`
	}

	// block is a part of a message: text, image, tool_use, tool_result, or a block that the provider wants back as it is.
	block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text,omitempty"`
		Source    *source         `json:"source,omitempty"`      // of an image
		ID        string          `json:"id,omitempty"`          // of a tool_use
		Name      string          `json:"name,omitempty"`        // of a tool_use
		Input     json.RawMessage `json:"input,omitempty"`       // of a tool_use
		ToolUseID string          `json:"tool_use_id,omitempty"` // of a tool_result
		Content   []block         `json:"content,omitempty"`     // of a tool_result
		IsError   bool            `json:"is_error,omitempty"`    // of a tool_result

		CacheControl *cacheControl `json:"cache_control,omitempty"`

		raw json.RawMessage // the whole block
	}

	cacheControl struct {
		Type string `json:"type"` // ephemeral
	}

	thinking struct {
		Type      string `json:"type"` // thinking
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}

	source struct {
		Type      string `json:"type"` // base64
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}

	tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`

		CacheControl *cacheControl `json:"cache_control,omitempty"`
	}

	toolChoice struct {
		Type string `json:"type"` // tool
		Name string `json:"name"`
	}
)

// MarshalJSON implements json.Marshaler.
func (b block) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type plain block
	return json.Marshal(plain(b))
}

// The events of a streamed answer, all in one type, and a whole answer.
type (
	streamEvent struct {
		Type         string          `json:"type"`
		Message      *started        `json:"message"`       // of message_start
		Index        int64           `json:"index"`         // of content_block_start and content_block_delta
		ContentBlock json.RawMessage `json:"content_block"` // of content_block_start
		Delta        json.RawMessage `json:"delta"`         // of content_block_delta and message_delta
		Usage        json.RawMessage `json:"usage"`         // of message_delta

		Model      string            `json:"model"`       // of a whole answer
		Content    []json.RawMessage `json:"content"`     // of a whole answer
		StopReason upstream.Word     `json:"stop_reason"` // of a whole answer
	}

	started struct {
		Model string          `json:"model"`
		Usage json.RawMessage `json:"usage"`
	}

	// contentBlock begins a block. Blocks of other types than text, thinking and tool_use may have any further members.
	contentBlock struct {
		Type      string          `json:"type"`
		Text      upstream.Piece  `json:"text"`
		ID        upstream.Word   `json:"id"`
		Name      upstream.Word   `json:"name"`
		Input     json.RawMessage `json:"input"`
		Thinking  upstream.Piece  `json:"thinking"`
		Signature string          `json:"signature"`
	}

	delta struct {
		Type        string             `json:"type"` // text_delta, input_json_delta, thinking_delta, signature_delta
		Text        upstream.Piece     `json:"text"`
		PartialJSON upstream.Arguments `json:"partial_json"`
		Thinking    upstream.Piece     `json:"thinking"`
		Signature   string             `json:"signature"`
		StopReason  upstream.Word      `json:"stop_reason"` // of message_delta
	}

	// usage counts tokens of the whole message so far.
	usage struct {
		InputTokens   upstream.Count `json:"input_tokens"` // message_delta may lack it
		CacheRead     upstream.Count `json:"cache_read_input_tokens"`
		CacheCreation upstream.Count `json:"cache_creation_input_tokens"`
		OutputTokens  upstream.Count `json:"output_tokens"`
	}
)

// Values of the protocol.
const (
	roleUser      = "user"
	roleAssistant = "assistant"

	typeText       = "text"
	typeImage      = "image"
	sourceBase64   = "base64"
	typeToolUse    = "tool_use"
	typeToolResult = "tool_result"
	typeThinking   = "thinking"
	typeRedacted   = "redacted_thinking"
)

var ephemeral = &cacheControl{Type: "ephemeral"}

// delta returns the event's delta; one that cannot be read is empty.
func (e *streamEvent) delta() (d delta) {
	if len(e.Delta) > 0 {
		_ = json.Unmarshal(e.Delta, &d) // a member of another type is skipped, and all others are read
	}
	return d
}

func text(s string) block { return block{Type: typeText, Text: s} }
