package openai

import "encoding/json"

// The members of the chat completions protocol that Waggle uses. Source: OpenAI's API reference, "Create chat completion"
// and "Streaming".
type (
	request struct {
		Model               string          `json:"model"`
		Messages            []message       `json:"messages"`
		Tools               []tool          `json:"tools,omitempty"`
		ResponseFormat      *responseFormat `json:"response_format,omitempty"`
		MaxTokens           int             `json:"max_tokens,omitempty"`
		MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
		Stream              bool            `json:"stream"`
		StreamOptions       streamOptions   `json:"stream_options"`
	}

	streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}

	message struct {
		Role       string     `json:"role"`              // system, user, assistant, tool
		Content    any        `json:"content,omitempty"` // *string, or []contentPart with images
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"` // the call that a message of a tool is the result of
	}

	contentPart struct {
		Type     string    `json:"type"` // text, image_url
		Text     string    `json:"text,omitempty"`
		ImageURL *imageURL `json:"image_url,omitempty"`
	}

	imageURL struct {
		URL string `json:"url"` // with the image itself in it
	}

	tool struct {
		Type     string   `json:"type"` // function
		Function function `json:"function"`
	}

	function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}

	toolCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"` // function
		Function functionCall `json:"function"`
	}

	functionCall struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON
	}

	responseFormat struct {
		Type       string     `json:"type"` // json_schema
		JSONSchema jsonSchema `json:"json_schema"`
	}

	jsonSchema struct {
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	}
)

// The events of a streamed answer.
type (
	chunk struct {
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   *usage   `json:"usage"`
	}

	choice struct {
		Index        int64  `json:"index"`
		Delta        delta  `json:"delta"`
		FinishReason string `json:"finish_reason"`
	}

	delta struct {
		Content   string          `json:"content"`
		Refusal   string          `json:"refusal"`
		ToolCalls []toolCallDelta `json:"tool_calls"`
	}

	toolCallDelta struct {
		Index    int64        `json:"index"`
		ID       string       `json:"id"`
		Function functionCall `json:"function"`
	}

	usage struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
	}
)
