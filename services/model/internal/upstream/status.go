package upstream

import (
	"net/http"
	"strconv"
	"time"
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
