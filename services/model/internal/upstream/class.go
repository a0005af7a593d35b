package upstream

import (
	"net/http"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// A mark maps a provider's name for a refusal, or words of its message, to the class.
type mark struct {
	code  fault.Code
	names []string // machine-readable codes and types
	words []string // parts of messages, in lower case
}

// marks are those of OpenAI, Azure, Anthropic, OpenRouter, vLLM, llama.cpp and Ollama, in the order of matching: servers
// that use one status for several errors distinguish them in words.
var marks = []mark{
	{
		fault.ModelOutOfQuota,
		[]string{"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"},
		[]string{"credit balance is too low", "insufficient credits", "insufficient balance"},
	},
	{
		fault.ModelContentRefused,
		[]string{"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_error"},
		[]string{"content management policy", "content filtering policy", "content policy", "flagged"},
	},
	{
		fault.ModelInputTooLong,
		[]string{"context_length_exceeded", "string_above_max_length", "request_too_large", "exceed_context_size_error"},
		[]string{
			"maximum context length", "prompt is too long", "input is too long", "context limit", "context window", "context length",
			"available context size",
		},
	},
	{
		fault.ModelNotFound,
		[]string{"model_not_found", "not_found_error", "deploymentnotfound", "notfounderror"},
		[]string{"is not a valid model", "no such model"},
	},
	{
		fault.ModelKeyRefused,
		[]string{"invalid_api_key", "authentication_error", "permission_error", "permission_denied"},
		[]string{"invalid api key", "incorrect api key"},
	},
}

// Class returns the fault for the provider's answer.
func (e *StatusError) Class() fault.Code {
	if code := e.marked(); code != "" {
		return code
	}
	switch {
	case e.Status == http.StatusTooManyRequests:
		return fault.ModelRateLimited
	case e.Status == statusOverloaded:
		return fault.ModelBusy
	case e.Status >= 500, e.Status == http.StatusRequestTimeout:
		return fault.ModelFailed
	case e.Status >= 200 && e.Status < 300:
		return fault.ModelBadReply
	}
	switch e.Status {
	case http.StatusPaymentRequired:
		return fault.ModelOutOfQuota
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.ModelKeyRefused
	case http.StatusNotFound:
		return fault.ModelNotFound
	case http.StatusRequestEntityTooLarge:
		return fault.ModelInputTooLong
	}
	return fault.ModelRefused
}

// marked returns the class that the provider names, or "". Words count only in refusals: a provider that is down or
// overloaded may quote anything.
func (e *StatusError) marked() fault.Code {
	names := []string{strings.ToLower(e.Kind), strings.ToLower(e.Type), strings.ToLower(e.Inner)}
	refusal := e.Status >= 400 && e.Status < 500 && e.Status != http.StatusTooManyRequests && e.Status != http.StatusRequestTimeout
	said := strings.ToLower(e.Detail)
	for _, m := range marks {
		if slices.ContainsFunc(m.names, func(name string) bool { return slices.Contains(names, name) }) {
			return m.code
		}
		if refusal && slices.ContainsFunc(m.words, func(words string) bool { return strings.Contains(said, words) }) {
			return m.code
		}
	}
	return ""
}
