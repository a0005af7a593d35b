// Package answer writes answers over HTTP: faults as problem documents, and all answers within a deadline.
package answer

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// RetryAfter is the value of the header Retry-After, in seconds, when the same request may succeed later.
const RetryAfter = "5"

// MediaProblem is the media type of a problem document.
const MediaProblem = "application/problem+json"

// document is an error answer (RFC 9457).
type document struct {
	Type   string `json:"type"`
	Title  string `json:"title"` // the fault's code
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
}

func documentOf(f *fault.Fault, status int) document {
	return document{Type: "about:blank", Title: string(f.Code), Status: status, Detail: f.Public(), Field: f.Field}
}

// Fault answers with a fault and its status.
func Fault(w http.ResponseWriter, f *fault.Fault) error {
	return Refusal(w, f, fault.Lookup(f.Code).Status)
}

// Refusal answers with a fault and another status.
func Refusal(w http.ResponseWriter, f *fault.Fault, status int) error {
	h := w.Header()
	h.Set("Content-Type", MediaProblem)
	if f.Retryable() {
		h.Set("Retry-After", RetryAfter)
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(documentOf(f, status))
}

// Raw returns the whole answer with a retryable fault, for a connection without a request. The answer ends the connection.
func Raw(f *fault.Fault) []byte {
	status := fault.Lookup(f.Code).Status
	body, err := json.Marshal(documentOf(f, status))
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\nRetry-After: %s\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), MediaProblem, RetryAfter, len(body), body)
}

// With answers with a fault whose document has more members.
func With(w http.ResponseWriter, f *fault.Fault, members map[string]any) error {
	status := fault.Lookup(f.Code).Status
	d := documentOf(f, status)
	h := w.Header()
	if f.Retryable() {
		h.Set("Retry-After", RetryAfter)
	}
	if f.Field != "" {
		members["field"] = f.Field
	}
	members["type"], members["title"], members["status"], members["detail"] = d.Type, d.Title, d.Status, d.Detail
	h.Set("Content-Type", MediaProblem)
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(members)
}
