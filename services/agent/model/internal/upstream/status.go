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

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// maxDetail is how much of a provider's own words goes into the log.
	maxDetail = 500
	// statusOverloaded is Anthropic's "overloaded"; it has no name in net/http.
	statusOverloaded = 529
	// minKey is the shortest key that is searched for: shorter ones would blot out words.
	minKey = 6
)

// StatusError is an answer that is no success, or an error event inside a stream.
type StatusError struct {
	Status int           // of the answer, or the one that the error event stands for
	Kind   string        // the provider's machine-readable name of the error, if it has one
	Detail string        // the provider's words
	After  time.Duration // how long the provider wants to be left alone; 0 = it did not say
}

// Error returns the status and the provider's words. Only [Client.Do] makes it fit for logs.
func (e *StatusError) Error() string {
	return strings.TrimRight(fmt.Sprintf("status %d %s: %s", e.Status, e.Kind, e.Detail), ": ")
}

// ErrorBody is the error object of both vendors' answers and streams.
type ErrorBody struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a string or a number
}

// Event returns the error that an error event inside a stream stands for.
func (b ErrorBody) Event() *StatusError {
	e := &StatusError{Kind: b.kind(), Detail: b.Message}
	if status, err := strconv.Atoi(string(b.Code)); err == nil && status >= 400 && status < 600 {
		e.Status = status
	} else {
		e.Status = kindStatus(e.Kind, b.Type)
	}
	return e
}

func (b ErrorBody) kind() string {
	var code string
	if json.Unmarshal(b.Code, &code) == nil && code != "" {
		return code
	}
	return b.Type
}

// kindStatus returns the HTTP status that goes with the name of an error. What is
// not known is the provider's trouble.
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

// statusError reads an answer that is no success. Bodies come as both vendors
// send them, {"error": {...}}, as {"error": "text"}, or as a proxy's page.
func statusError(res *http.Response, raw []byte, now time.Time) *StatusError {
	e := &StatusError{Status: res.StatusCode, After: retryAfter(res.Header, now)}
	var b struct {
		Error json.RawMessage `json:"error"`
	}
	var body ErrorBody
	switch {
	case json.Unmarshal(raw, &b) != nil:
		e.Detail = string(raw)
	case json.Unmarshal(b.Error, &body) == nil:
		e.Kind, e.Detail = body.kind(), body.Message
	case json.Unmarshal(b.Error, &e.Detail) != nil:
		e.Detail = string(raw)
	}
	return e
}

// retryAfter reads Retry-After, in seconds or as an HTTP date, and the finer
// Retry-After-Ms of OpenAI. It returns 0 for none or nonsense.
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

// bounded converts n units to a duration, a day at most: no budget is longer, and nothing overflows.
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

// failure is a classified error.
type failure struct {
	fault *fault.Fault
	retry bool          // trying again may help
	after time.Duration // not before; 0 = no wish
}

func (f *failure) Error() string { return f.fault.Error() }
func (f *failure) Unwrap() error { return f.fault }

// classify maps any error of an attempt to the fault catalogue.
func (c *Client) classify(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if s, ok := errors.AsType[*StatusError](err); ok {
		return c.classifyStatus(s)
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return &failure{fault: f.Wrap(c.clean(errors.Unwrap(f)))}
	}
	cause := c.clean(err)
	switch {
	case errors.Is(err, errSilent):
		return &failure{fault: fault.New(fault.ModelTimeout).Wrap(cause)}
	case errors.Is(err, errTooLong):
		return &failure{fault: fault.New(fault.ModelBadReply).Wrap(cause)}
	}
	return &failure{fault: fault.New(fault.ModelFailed).Wrap(cause), retry: true}
}

func (c *Client) classifyStatus(s *StatusError) *failure {
	cause := c.clean(s)
	switch {
	case s.Kind == "insufficient_quota": // sent as 429, but waiting does not fill an account
		return &failure{fault: fault.New(fault.ModelRefused).Wrap(cause)}
	case s.Status == http.StatusTooManyRequests, s.Status == statusOverloaded:
		return &failure{fault: fault.New(fault.ModelBusy).Wrap(cause), retry: true, after: s.After}
	case s.Status >= 500, s.Status == http.StatusRequestTimeout:
		return &failure{fault: fault.New(fault.ModelFailed).Wrap(cause), retry: true, after: s.After}
	case s.Status >= 200 && s.Status < 300:
		return &failure{fault: fault.New(fault.ModelBadReply).Wrap(cause)}
	}
	return &failure{fault: fault.New(fault.ModelRefused).Wrap(cause)}
}

// clean returns the error's text without keys, in one line of bounded length.
func (c *Client) clean(err error) error {
	if err == nil {
		return nil
	}
	s := strings.Join(strings.Fields(strings.ToValidUTF8(c.scrub(err.Error()), "?")), " ")
	if r := []rune(s); len(r) > maxDetail {
		s = string(r[:maxDetail]) + "..."
	}
	return errors.New(s)
}

// keyLike matches what both vendors' keys look like, whole or masked.
var keyLike = regexp.MustCompile(`\bsk-[A-Za-z0-9_*.-]{6,}`)

func scrubber(key string) func(string) string {
	return func(s string) string {
		if len(key) >= minKey {
			s = strings.ReplaceAll(s, key, "[key]")
		}
		return keyLike.ReplaceAllString(s, "[key]")
	}
}
