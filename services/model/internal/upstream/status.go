package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
)

const (
	// maxDetail bounds a provider's message in the log.
	maxDetail = 500
	// maxName bounds an error's name and a request's id in the log.
	maxName = 100
	// statusOverloaded is Anthropic's "overloaded"; net/http has no name for it.
	statusOverloaded = 529
	// minKey is the shortest key that text removes: shorter keys would blot out words.
	minKey = 6
)

// StatusError is an unsuccessful response, or an error event inside a stream.
type StatusError struct {
	Status    int           // of the response, or the status that the error event stands for
	Kind      string        // the provider's machine-readable name of the error, or empty
	Type      string        // the error's kind, if the provider sends it in another member than the name
	Inner     string        // the name of the underlying error
	Detail    string        // the provider's message
	RequestID string        // the request's id for the provider's support
	After     time.Duration // the provider's requested wait; 0 = not given
}

// Error returns the status and the provider's message. Only [Client.Do] makes it fit for logs.
func (e *StatusError) Error() string {
	return strings.TrimRight(fmt.Sprintf("status %d %s: %s", e.Status, e.Kind, e.Detail), ": ")
}

// ErrorBody is the error object of the providers' responses and streams.
type ErrorBody struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a string or a number
	Inner   struct {
		Code string `json:"code"`
	} `json:"innererror"` // of Azure
	Metadata struct {
		Reasons []string `json:"reasons"`
	} `json:"metadata"` // of OpenRouter: the reason of its moderation
}

// Event returns the error that an error event inside a stream stands for.
func (b ErrorBody) Event() *StatusError {
	e := &StatusError{}
	b.into(e)
	if status, err := strconv.Atoi(string(b.Code)); err == nil && status >= 400 && status < 600 {
		e.Status = status
	} else {
		e.Status = kindStatus(e.Kind, b.Type)
	}
	return e
}

func (b ErrorBody) into(e *StatusError) {
	e.Kind, e.Type, e.Inner, e.Detail = b.Type, b.Type, b.Inner.Code, b.Message
	var code string
	if json.Unmarshal(b.Code, &code) == nil && code != "" {
		e.Kind = code
	}
	if len(b.Metadata.Reasons) > 0 {
		e.Inner = "moderation_error"
	}
}

// kindStatus returns the HTTP status of an error's name. An unknown name counts as a fault of the provider.
func kindStatus(kinds ...string) int {
	for _, k := range kinds {
		switch {
		case strings.Contains(k, "rate_limit"), k == "insufficient_quota":
			return http.StatusTooManyRequests
		case strings.Contains(k, "overloaded"):
			return statusOverloaded
		case strings.Contains(k, "authentication"), k == "invalid_api_key":
			return http.StatusUnauthorized
		case strings.Contains(k, "permission"):
			return http.StatusForbidden
		case strings.Contains(k, "not_found"):
			return http.StatusNotFound
		case strings.Contains(k, "invalid_request"), k == "context_length_exceeded":
			return http.StatusBadRequest
		case strings.Contains(k, "too_large"):
			return http.StatusRequestEntityTooLarge
		case strings.Contains(k, "timeout"):
			return http.StatusGatewayTimeout
		}
	}
	return http.StatusInternalServerError
}

// requestIDs are the headers in which providers send a request's id.
var requestIDs = []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Ms-Request-Id", "Cf-Ray"}

// statusError reads an unsuccessful response. Its body is {"error": {...}}, {"error": "text"}, the object without a name
// (vLLM), a list of these, or a proxy's page.
func statusError(res *http.Response, raw []byte, now time.Time) *StatusError {
	e := &StatusError{Status: res.StatusCode, After: retryAfter(res.Header, now)}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	var b struct {
		Error     json.RawMessage `json:"error"`
		RequestID string          `json:"request_id"`
		Message   string          `json:"message"`
	}
	var body ErrorBody
	switch {
	case json.Unmarshal(raw, &b) != nil:
		e.Detail = string(raw)
	case b.Error == nil && b.Message != "" && json.Unmarshal(raw, &body) == nil, json.Unmarshal(b.Error, &body) == nil:
		body.into(e)
	case json.Unmarshal(b.Error, &e.Detail) != nil:
		e.Detail = string(raw)
	}
	e.RequestID = b.RequestID
	for _, name := range requestIDs {
		if v := res.Header.Get(name); v != "" {
			e.RequestID = v
			break
		}
	}
	return e
}

// retryAfter reads Retry-After, in seconds or as an HTTP date, and the finer Retry-After-Ms of OpenAI. It returns 0 for a
// missing or invalid header.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return bounded(ms, time.Millisecond)
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return bounded(s, time.Second)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// bounded converts n units to a duration of at most a day: no budget is longer, and nothing overflows.
func bounded(n float64, unit time.Duration) time.Duration {
	const day = 24 * time.Hour
	switch {
	case n >= float64(day/unit):
		return day
	case n > 0:
		return time.Duration(n * float64(unit))
	}
	return 0
}

func (c *Client) failure(code fault.Code, cause error) *model.Failure {
	f := &model.Failure{Fault: fault.New(code)}
	if cause != nil {
		f.Said.Message = c.text(cause.Error(), maxDetail)
		f.Fault = f.Fault.Wrap(errors.New(f.Said.Message))
	}
	switch code {
	case fault.ModelBusy, fault.ModelFailed, fault.ModelCutOff:
		f.Retry = true
	}
	return f
}

// text returns a provider's text without keys and control characters, in one line of bounded length.
func (c *Client) text(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(c.scrub(s), "?"))
	s = strings.Join(strings.Fields(c.scrub(s)), " ")
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "..."
	}
	return s
}

// keyLike matches the forms of providers' keys, whole or masked, and the text after "Bearer".
var keyLike = regexp.MustCompile(`\b(?:(?:sk|gsk|xai|hf|pplx|key)[-_]|AIza)[A-Za-z0-9_*.-]{6,}|(?i:\bbearer\s+)[A-Za-z0-9_*.~+/=-]{6,}`)

func scrubber(key string) func(string) string {
	return func(s string) string {
		if len(key) >= minKey {
			s = strings.ReplaceAll(s, key, "[key]")
		}
		return keyLike.ReplaceAllString(s, "[key]")
	}
}
