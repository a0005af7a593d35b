package modeltest

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// form is an error in a real server's form, its class, and the text for operators.
type form struct {
	name   string
	status int
	header string // the header with the request's id
	body   string
	class  fault.Code
	said   event.ProviderError
}

var forms = []form{
	{
		"OpenAI: key", 401, "X-Request-Id",
		`{"error":{"message":"Incorrect API key provided: ` + key + `.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`,
		fault.ModelKeyRefused,
		event.ProviderError{Status: 401, Code: "invalid_api_key", RequestID: "req_1", Message: "Incorrect API key provided: [key]."},
	},
	{
		"OpenAI: model", 404, "X-Request-Id",
		`{"error":{"message":"The model 'gpt-x' does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`,
		fault.ModelNotFound,
		event.ProviderError{Status: 404, Code: "model_not_found", RequestID: "req_1", Message: "The model 'gpt-x' does not exist or you do not have access to it."},
	},
	{
		"OpenAI: length", 400, "X-Request-Id",
		`{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
		fault.ModelInputTooLong,
		event.ProviderError{Status: 400, Code: "context_length_exceeded", RequestID: "req_1", Message: "This model's maximum context length is 8192 tokens."},
	},
	{
		"OpenAI: tool", 400, "X-Request-Id",
		`{"error":{"message":"Invalid schema for function 'f'\u001b[31m: \u202e\"x\"\nis not valid.","type":"invalid_request_error","param":"tools[0].function.parameters","code":"invalid_function_parameters"}}`,
		fault.ModelRefused,
		event.ProviderError{Status: 400, Code: "invalid_function_parameters", RequestID: "req_1", Message: `Invalid schema for function 'f'[31m: "x" is not valid.`},
	},
	{
		"OpenAI: quota", 429, "X-Request-Id",
		`{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
		fault.ModelOutOfQuota,
		event.ProviderError{Status: 429, Code: "insufficient_quota", RequestID: "req_1", Message: "You exceeded your current quota."},
	},
	{
		"OpenAI: rate", 429, "X-Request-Id",
		`{"error":{"message":"Rate limit reached for requests","type":"requests","param":null,"code":"rate_limit_exceeded"}}`,
		fault.ModelRateLimited,
		event.ProviderError{Status: 429, Code: "rate_limit_exceeded", RequestID: "req_1", Message: "Rate limit reached for requests"},
	},
	{
		"Azure: content", 400, "Apim-Request-Id",
		`{"error":{"message":"The response was filtered.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`,
		fault.ModelContentRefused,
		event.ProviderError{Status: 400, Code: "content_filter", RequestID: "req_1", Message: "The response was filtered."},
	},
	{
		"Anthropic: key", 401, "Request-Id",
		`{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`,
		fault.ModelKeyRefused,
		event.ProviderError{Status: 401, Code: "authentication_error", RequestID: "req_1", Message: "invalid x-api-key"},
	},
	{
		"Anthropic: model", 404, "",
		`{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"},"request_id":"req_1"}`,
		fault.ModelNotFound,
		event.ProviderError{Status: 404, Code: "not_found_error", RequestID: "req_1", Message: "model: claude-x"},
	},
	{
		"Anthropic: length", 400, "Request-Id",
		`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`,
		fault.ModelInputTooLong,
		event.ProviderError{Status: 400, Code: "invalid_request_error", RequestID: "req_1", Message: "prompt is too long: 210000 tokens > 200000 maximum"},
	},
	{
		"Anthropic: credit", 400, "Request-Id",
		`{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`,
		fault.ModelOutOfQuota,
		event.ProviderError{Status: 400, Code: "invalid_request_error", RequestID: "req_1", Message: "Your credit balance is too low to access the API."},
	},
	{
		"Anthropic: tool", 400, "Request-Id",
		`{"type":"error","error":{"type":"invalid_request_error","message":"tools.0.custom.input_schema: JSON schema is invalid"}}`,
		fault.ModelRefused,
		event.ProviderError{Status: 400, Code: "invalid_request_error", RequestID: "req_1", Message: "tools.0.custom.input_schema: JSON schema is invalid"},
	},
	{
		"Anthropic: overloaded", 529, "Request-Id",
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
		fault.ModelBusy,
		event.ProviderError{Status: 529, Code: "overloaded_error", RequestID: "req_1", Message: "Overloaded"},
	},
	{
		"vLLM: length", 400, "",
		`{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}`,
		fault.ModelInputTooLong,
		event.ProviderError{Status: 400, Code: "BadRequestError", Message: "This model's maximum context length is 4096 tokens."},
	},
	{
		"vLLM: model", 404, "",
		`{"error":{"message":"The model ` + "`x`" + ` does not exist.","type":"NotFoundError","param":"model","code":404}}`,
		fault.ModelNotFound,
		event.ProviderError{Status: 404, Code: "NotFoundError", Message: "The model `x` does not exist."},
	},
	{
		"llama.cpp: length", 400, "",
		`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000}}`,
		fault.ModelInputTooLong,
		event.ProviderError{Status: 400, Code: "exceed_context_size_error", Message: "the request exceeds the available context size, try increasing it"},
	},
	{
		"llama.cpp: loading", 503, "", `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`,
		fault.ModelFailed,
		event.ProviderError{Status: 503, Code: "unavailable_error", Message: "Loading model"},
	},
	{
		"Ollama: model", 404, "", `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`,
		fault.ModelNotFound,
		event.ProviderError{Status: 404, Code: "api_error", Message: `model "x" not found, try pulling it first`},
	},
	{
		"Ollama: text", 400, "", `{"error":"registry.ollama.ai/library/x does not support tools"}`,
		fault.ModelRefused,
		event.ProviderError{Status: 400, Message: "registry.ollama.ai/library/x does not support tools"},
	},
	{
		"OpenRouter: credits", 402, "Cf-Ray", `{"error":{"code":402,"message":"Insufficient credits"}}`,
		fault.ModelOutOfQuota,
		event.ProviderError{Status: 402, RequestID: "req_1", Message: "Insufficient credits"},
	},
	{
		"OpenRouter: moderation", 403, "Cf-Ray",
		`{"error":{"code":403,"message":"Your input was refused","metadata":{"reasons":["violence"],"flagged_input":"..."}}}`,
		fault.ModelContentRefused,
		event.ProviderError{Status: 403, RequestID: "req_1", Message: "Your input was refused"},
	},
	{
		"a list", 400, "", `[{"error":{"code":400,"message":"x is not a valid model ID","status":"INVALID_ARGUMENT"}}]`,
		fault.ModelNotFound,
		event.ProviderError{Status: 400, Code: "INVALID_ARGUMENT", Message: "x is not a valid model ID"},
	},
}

// errorForms serves each form to the model: in every protocol, since gateways pass on the errors of others. The client sees
// the class and none of the words.
func (h HTTP) errorForms(t *testing.T) {
	var reply scripted.Reply
	s := h.start(t, func(*scripted.Exchange) scripted.Reply { return reply }, model.Env{})
	for _, f := range forms {
		reply = scripted.Reply{Status: f.status, Body: f.body, Header: http.Header{"Content-Type": {"application/json"}}}
		if f.header != "" {
			reply.Header.Set(f.header, "req_1")
		}
		_, err := s.m.Generate(t.Context(), Ask("hello"), model.Text(func(string) error { return nil }))
		failed, ok := errors.AsType[*model.Failure](err)
		require.True(t, ok, "%s: %v", f.name, err)
		require.Equal(t, f.class, failed.Fault.Code, f.name)
		require.Equal(t, f.said, failed.Said, f.name)
		require.Equal(t, slices.Contains([]fault.Code{fault.ModelBusy, fault.ModelRateLimited, fault.ModelFailed}, f.class), failed.Retry, f.name)
		require.Equal(t, fault.Lookup(f.class).Message, failed.Fault.Public(), f.name)
	}
}

// ExerciseHTTP runs Exercise against the scripted server, and then every failure of a provider.
func ExerciseHTTP(t *testing.T, h HTTP) {
	t.Helper()
	t.Run("conformance", func(t *testing.T) {
		Exercise(t, Suite{Usage: true, Open: func(t *testing.T) model.Model {
			return h.start(t, scripted.Smart(), model.Env{}).m
		}})
	})
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) { h.fails(t, f) })
	}
	cases := map[string]func(*testing.T){
		"cancel closes the request": h.cancel, "deadline closes the request": h.deadline,
		"a failing reader closes the request": h.reader, "every cut": h.everyCut, "error forms": h.errorForms,
		"no server": h.noServer, "empty answer": h.empty, "a token at a time": h.slow,
		"invalid arguments": h.invalidArguments, "ids": h.ids, "no usage": h.noUsage,
		"length": h.length, "no arguments": h.noArguments, "text before calls": h.textAndCalls, "dates": h.dates,
		"refuses odd addresses": h.addresses, "form": h.form,
	}
	for name, run := range cases {
		t.Run(name, run)
	}
}
