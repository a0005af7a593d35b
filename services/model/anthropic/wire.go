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

	// block is a part of a message: text, image, tool_use or tool_result.
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
	}

	toolChoice struct {
		Type string `json:"type"` // tool
		Name string `json:"name"`
	}
)

// The events of a streamed answer, all in one type.
type (
	streamEvent struct {
		Type         string             `json:"type"`
		Error        upstream.ErrorBody `json:"error"`
		Message      *started           `json:"message"`       // of message_start
		Index        int64              `json:"index"`         // of content_block_start and content_block_delta
		ContentBlock contentBlock       `json:"content_block"` // of content_block_start
		Delta        delta              `json:"delta"`         // of content_block_delta and message_delta
		Usage        *usage             `json:"usage"`         // of message_delta
	}

	started struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	}

	// contentBlock begins a block. Blocks of other types than text and tool_use may have any further members.
	contentBlock struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}

	delta struct {
		Type        string `json:"type"` // text_delta, input_json_delta
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"` // of message_delta
	}

	// usage counts tokens of the whole message so far.
	usage struct {
		InputTokens              *int64 `json:"input_tokens"` // message_delta may lack it
		CacheReadInputTokens     int64  `json:"cache_read_input_tokens"`
		CacheCreationInputTokens int64  `json:"cache_creation_input_tokens"`
		OutputTokens             int64  `json:"output_tokens"`
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

	stopMaxTokens     = "max_tokens"
	stopContextWindow = "model_context_window_exceeded"
	stopRefusal       = "refusal"
)
