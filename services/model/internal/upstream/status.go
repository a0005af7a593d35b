package upstream

import (
	"errors"
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

// requestIDs are the headers in which providers send a request's id.
var requestIDs = []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Ms-Request-Id", "Cf-Ray"}

// statusError reads an unsuccessful response.
func statusError(res *http.Response, raw []byte, now time.Time) *StatusError {
	e := &StatusError{Status: res.StatusCode, After: retryAfter(res.Header, now)}
	if b, ok := readError(raw); ok {
		b.into(e)
		e.RequestID = b.RequestID
	} else {
		e.Detail = string(raw)
	}
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

func scrubber(secrets []string) func(string) string {
	return func(s string) string {
		for _, secret := range secrets {
			if len(secret) >= minKey {
				s = strings.ReplaceAll(s, secret, "[key]")
			}
		}
		return keyLike.ReplaceAllString(s, "[key]")
	}
}
