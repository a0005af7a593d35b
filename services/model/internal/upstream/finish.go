package upstream

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/waggle-dev/waggle/services/model"
)

// Finish is what a provider says about the end of an answer.
type Finish struct {
	Stop   string // one of model's Stop constants
	Detail string // the provider's word, if Stop is model.StopOther
}

// Ends after which the model has to be asked again.
const (
	failed    = "failed"    // the provider's failure: what was said so far does not count
	malformed = "malformed" // the model's call of a tool could not be read
	paused    = "paused"    // the model continues when it is asked again with what it said
)

// finishes maps the words of servers, in lower case, to what they mean. They are those of OpenAI, Azure, Anthropic, Gemini,
// Bedrock, Cohere, Mistral, DeepSeek, Zhipu, Moonshot, Qwen, OpenRouter, vLLM, SGLang, llama.cpp and Text Generation
// Inference, whose gateways pass on the words of others.
var finishes = words(map[string]string{
	model.StopEnd:       "stop end end_turn stop_sequence eos eos_token eos_found complete completed finish finished normal done stop_token stopped",
	model.StopToolCalls: "tool_calls tool_call tool_use function_call function_calls tool",
	model.StopLength:    "length max_tokens max_output_tokens max_token max_length model_length model_context_window_exceeded context_length token_limit max_new_tokens limit",
	model.StopFiltered: "content_filter content_filtered content-filter filtered filter sensitive safety recitation blocklist prohibited_content spii " +
		"image_safety image_prohibited_content image_recitation language guardrail_intervened guardrail moderation error_toxic blocked",
	model.StopRefused: "refusal refused",
	failed: "error network_error insufficient_system_resource abort aborted cancelled canceled cancel timeout timed_out server_error internal_error " +
		"overloaded engine_overloaded capacity failed failure incomplete connection_error upstream_error error_limit disconnected interrupted",
	malformed: "malformed_function_call malformed_tool_call malformed_response unexpected_tool_call too_many_tool_calls invalid_tool_call malformed_model_output malformed_tool_use missing_thought_signature",
	paused:    "pause_turn pause",
})

func words(meanings map[string]string) map[string]string {
	out := map[string]string{}
	for meaning, list := range meanings {
		for _, w := range strings.Fields(list) {
			out[w] = meaning
		}
	}
	return out
}

// maxFinish bounds the word of an unknown end.
const maxFinish = 60

// End returns what the provider's word means, or the error that it stands for. Calls are trusted more than the word: several
// servers send "stop" after a call, or no word at all.
func End(word string, calls int) (Finish, error) {
	meaning := finishes[strings.ToLower(strings.TrimSpace(word))]
	switch {
	case meaning == failed:
		return Finish{}, &StatusError{Status: http.StatusBadGateway, Kind: word, Detail: fmt.Sprintf("the answer ended with %q", word)}
	case meaning == malformed:
		return Finish{}, &malformedError{word}
	case meaning == model.StopLength, meaning == model.StopFiltered, meaning == model.StopRefused:
		return Finish{Stop: meaning}, nil
	case calls > 0 && (meaning != "" || word == ""):
		return Finish{Stop: model.StopToolCalls}, nil
	case calls > 0:
		return Finish{Stop: model.StopToolCalls, Detail: clip(word)}, nil
	case meaning == "" && strings.TrimSpace(word) != "":
		return Finish{Stop: model.StopOther, Detail: clip(word)}, nil
	}
	return Finish{Stop: model.StopEnd}, nil
}

// Paused reports whether the model continues when it is sent its own output again.
func Paused(word string) bool { return finishes[strings.ToLower(word)] == paused }

func clip(word string) string {
	if r := []rune(word); len(r) > maxFinish {
		return string(r[:maxFinish]) + "..."
	}
	return word
}

// malformedError is a model's call that its server could not read.
type malformedError struct{ word string }

// Error implements error.
func (e *malformedError) Error() string {
	return fmt.Sprintf("the model's call of a tool could not be read: the answer ended with %q", e.word)
}

// emptyError is an answer without text and calls.
type emptyError struct {
	stop      string
	reasoning int
}

// Error implements error.
func (e *emptyError) Error() string {
	return fmt.Sprintf("the answer has neither text nor calls, and %d bytes of reasoning; it ended with %q", e.reasoning, e.stop)
}
