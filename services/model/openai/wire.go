package openai

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// The members of the chat completions protocol that Waggle uses. Source: OpenAI's API reference, "Create chat completion"
// and "Streaming". Those of other servers are marked: such a member goes to a server that has sent it, and to no other.
type (
	request struct {
		Model               string          `json:"model"`
		Messages            []message       `json:"messages"`
		Tools               []tool          `json:"tools,omitempty"`
		ResponseFormat      *responseFormat `json:"response_format,omitempty"`
		MaxTokens           int             `json:"max_tokens,omitempty"`
		MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
		Stream              bool            `json:"stream"`
		StreamOptions       *streamOptions  `json:"stream_options,omitempty"`
	}

	streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}

	message struct {
		Role       string     `json:"role"`              // system, user, assistant, tool
		Content    any        `json:"content,omitempty"` // *string, or []contentPart with images
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"` // the call that a message of a tool is the result of

		ReasoningContent string            `json:"reasoning_content,omitempty"` // DeepSeek, Moonshot, Qwen, SGLang, llama.cpp
		Reasoning        string            `json:"reasoning,omitempty"`         // OpenRouter, vLLM, Groq, Together, Ollama
		ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"` // OpenRouter
		ExtraContent     json.RawMessage   `json:"extra_content,omitempty"`     // Gemini
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
		ID           string          `json:"id"`
		Type         string          `json:"type"` // function
		Function     functionCall    `json:"function"`
		ExtraContent json.RawMessage `json:"extra_content,omitempty"` // Gemini
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
		Model   upstream.Word   `json:"model"`
		Choices []choice        `json:"choices"`
		Usage   json.RawMessage `json:"usage"`
		Groq    struct {
			Usage json.RawMessage `json:"usage"`
		} `json:"x_groq"`
	}

	choice struct {
		Index        upstream.Count  `json:"index"`
		Delta        delta           `json:"delta"`
		Message      *delta          `json:"message"` // of servers that do not stream: the whole answer
		FinishReason upstream.Word   `json:"finish_reason"`
		Error        json.RawMessage `json:"error"` // OpenRouter
		Usage        json.RawMessage `json:"usage"` // Moonshot
	}

	delta struct {
		Content   upstream.Piece  `json:"content"`
		Refusal   upstream.Piece  `json:"refusal"`
		ToolCalls []toolCallDelta `json:"tool_calls"`
		Function  *functionDelta  `json:"function_call"` // older than tools

		ReasoningContent upstream.Piece    `json:"reasoning_content"`
		Reasoning        upstream.Piece    `json:"reasoning"`
		ReasoningDetails []json.RawMessage `json:"reasoning_details"`
		ExtraContent     json.RawMessage   `json:"extra_content"`
	}

	toolCallDelta struct {
		Index        upstream.Count  `json:"index"`
		ID           upstream.Word   `json:"id"`
		Function     functionDelta   `json:"function"`
		ExtraContent json.RawMessage `json:"extra_content"`
	}

	functionDelta struct {
		Name      upstream.Word      `json:"name"`
		Arguments upstream.Arguments `json:"arguments"`
	}

	// usage counts tokens. Members after the first three are details, and missing on many servers.
	usage struct {
		Prompt     upstream.Count `json:"prompt_tokens"`
		Completion upstream.Count `json:"completion_tokens"`
		Total      upstream.Count `json:"total_tokens"`
		PromptMore struct {
			Cached     upstream.Count `json:"cached_tokens"`
			CacheWrite upstream.Count `json:"cache_write_tokens"` // OpenRouter
		} `json:"prompt_tokens_details"`
		CompletionMore struct {
			Reasoning upstream.Count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		CacheHit upstream.Count `json:"prompt_cache_hit_tokens"` // DeepSeek
		Cached   upstream.Count `json:"cached_tokens"`           // Moonshot
	}
)
