package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// statusOverloaded is Anthropic's "overloaded"; net/http has no name for it.
const statusOverloaded = 529

// StatusError is an unsuccessful response, or an error inside a stream.
type StatusError struct {
	Status    int           // of the response, or the status that the error inside the stream stands for
	Kind      string        // the provider's machine-readable name of the error, or empty
	Type      string        // the error's kind, if the provider sends it in another member than the name
	Inner     string        // the name of the underlying error
	Param     string        // the member of the request that the provider names
	Detail    string        // the provider's message
	RequestID string        // the request's id for the provider's support
	After     time.Duration // the provider's requested wait; 0 = not given
	Late      bool          // a part of the answer was passed on before
}

// Error returns the status and the provider's message. Only [Client.Do] makes it fit for logs.
func (e *StatusError) Error() string {
	return strings.TrimRight(fmt.Sprintf("status %d %s: %s", e.Status, e.Kind, e.Detail), ": ")
}

// errorBody is the error object of the providers' responses and streams, in any of the forms
//
//	{"error": {...}}                          most
//	{"error": "text"}                         Ollama
//	{"object": "error", "message": ...}       vLLM
//	[{"error": {...}}]                        Gemini
//	{"detail": "text" or [{"loc", "msg"}]}    servers made with FastAPI, Mistral
//	{"errors": [{"code", "message"}]}         Cloudflare
//	{"code": "...", "message": "..."}         DashScope, Bedrock's gateways
type errorBody struct {
	Message   Word            `json:"message"`
	Type      Word            `json:"type"`
	Code      Word            `json:"code"` // a string or a number
	Status    Word            `json:"status"`
	Param     Word            `json:"param"`
	Error     json.RawMessage `json:"error"`
	Errors    json.RawMessage `json:"errors"`
	Detail    json.RawMessage `json:"detail"`
	RequestID string          `json:"request_id"`
	Inner     struct {
		Code Word `json:"code"`
	} `json:"innererror"` // of Azure
	Metadata struct {
		Reasons []string `json:"reasons"` // of OpenRouter's moderation
		Raw     Word     `json:"raw"`     // the words of the provider behind OpenRouter
	} `json:"metadata"`
}

// maxErrorDepth bounds the nesting of error objects in each other.
const maxErrorDepth = 4

// readError reads an error object. It reports false for anything else.
func readError(raw []byte) (errorBody, bool) { return readErrorIn(raw, maxErrorDepth) }

func readErrorIn(raw []byte, depth int) (b errorBody, ok bool) {
	raw = bytes.TrimSpace(raw)
	var list []json.RawMessage
	if depth > 0 && json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return readErrorIn(list[0], depth-1)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return errorBody{Message: Word(text)}, true
	}
	if !lenient(raw, &b) {
		return errorBody{}, false
	}
	if inner, ok := readErrorIn(b.Error, depth-1); depth > 0 && len(b.Error) > 0 && ok {
		if inner.RequestID == "" {
			inner.RequestID = b.RequestID
		}
		return inner, true
	}
	if inner, ok := readErrorIn(b.Errors, depth-1); depth > 0 && len(b.Errors) > 0 && ok {
		return inner, true
	}
	if b.Message == "" {
		b.Message, b.Param = detail(b.Detail)
	}
	return b, b.Message != ""
}

// lenient decodes what it can of an object: a member of another type is left out.
func lenient(raw []byte, b *errorBody) bool {
	if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return false
	}
	_ = json.Unmarshal(raw, b) // the first member of another type is skipped, and all others are read
	return true
}

// detail reads the refusal of a server that checks requests by a schema: which member, and why.
func detail(raw json.RawMessage) (message, param Word) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return Word(text), ""
	}
	var list []struct {
		Loc []Word `json:"loc"`
		Msg Word   `json:"msg"`
	}
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return Word(raw), ""
	}
	var all []string
	for _, d := range list {
		all = append(all, fmt.Sprintf("%s: %s", joinWords(d.Loc), d.Msg))
	}
	return Word(strings.Join(all, "; ")), Word(joinWords(list[0].Loc))
}

func joinWords(all []Word) string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = string(w)
	}
	return strings.Join(out, ".")
}

// Trouble returns the error that an event of a stream stands for; nil for other events. An event with the name
// "error" always is one. Usual is a text that ordinary events of the protocol have, and errors do not.
func Trouble(name string, data []byte, usual string) *StatusError {
	var o struct {
		Object  Word            `json:"object"`
		Type    Word            `json:"type"`
		Error   json.RawMessage `json:"error"`
		Errors  json.RawMessage `json:"errors"`
		Detail  json.RawMessage `json:"detail"`
		Message json.RawMessage `json:"message"`
		Choices json.RawMessage `json:"choices"`
		Code    json.RawMessage `json:"code"`
	}
	data = bytes.TrimSpace(data)
	named := name == "error"
	if !named && bytes.Contains(data, []byte(usual)) && !bytes.Contains(data, []byte(`"error`)) {
		return nil
	}
	if !named {
		object := json.Unmarshal(data, &o) == nil
		bare := !given(o.Choices) && (given(o.Detail) || given(o.Errors) || given(o.Code) && given(o.Message))
		if !object || !given(o.Error) && o.Object != "error" && o.Type != "error" && !bare {
			return nil
		}
	}
	b, ok := readError(data)
	if !ok {
		b.Message = Word(data)
	}
	return b.event()
}

// given reports whether a member is there and says something.
func given(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "{}", "[]":
		return false
	}
	return true
}

// event returns the error that an error object inside a stream stands for.
func (b errorBody) event() *StatusError {
	e := &StatusError{}
	b.into(e)
	if status, err := strconv.Atoi(string(b.Code)); err == nil && status >= 400 && status < 600 {
		e.Status = status
	} else {
		e.Status = kindStatus(e.Kind, string(b.Type), string(b.Status))
	}
	return e
}

func (b errorBody) into(e *StatusError) {
	e.Kind, e.Type, e.Inner, e.Detail, e.Param = string(b.Type), string(b.Type), string(b.Inner.Code), string(b.Message), string(b.Param)
	if b.Metadata.Raw != "" {
		e.Detail += ": " + string(b.Metadata.Raw)
	}
	if _, err := strconv.Atoi(string(b.Code)); err != nil && b.Code != "" {
		e.Kind = string(b.Code)
	}
	if e.Kind == "" {
		if _, err := strconv.Atoi(string(b.Status)); err != nil {
			e.Kind = string(b.Status)
		}
	}
	if len(b.Metadata.Reasons) > 0 {
		e.Inner = "moderation_error"
	}
}

// kindStatus returns the HTTP status of an error's name. An unknown name counts as a fault of the provider.
func kindStatus(kinds ...string) int {
	for _, k := range kinds {
		k = strings.ToLower(k)
		for _, s := range statuses {
			for _, part := range s.parts {
				if strings.Contains(k, part) {
					return s.status
				}
			}
		}
	}
	return http.StatusInternalServerError
}

// statuses are parts of the names of errors, in the order of matching.
var statuses = []struct {
	status int
	parts  []string
}{
	{http.StatusTooManyRequests, []string{"rate_limit", "ratelimit", "insufficient_quota", "resource_exhausted", "throttl", "too_many_requests"}},
	{statusOverloaded, []string{"overloaded", "capacity", "engine_busy"}},
	{http.StatusUnauthorized, []string{"authentication", "invalid_api_key", "unauthenticated", "unauthorized"}},
	{http.StatusForbidden, []string{"permission"}},
	{http.StatusNotFound, []string{"not_found", "notfound"}},
	{http.StatusGatewayTimeout, []string{"timeout", "deadline_exceeded"}},
	{http.StatusRequestEntityTooLarge, []string{"too_large"}},
	{http.StatusBadRequest, []string{
		"invalid_request", "context_length_exceeded", "exceed_context_size", "badrequest", "bad_request", "invalid_argument", "invalidparameter",
		"invalid_parameter", "validation", "unprocessable", "failed_precondition", "content_filter",
	}},
	{http.StatusServiceUnavailable, []string{"unavailable"}},
}
