package gateway

// retryAfter is the value of the header Retry-After, in seconds, when the same request may
// succeed later.
const retryAfter = "5"

// problemDocument is an error answer (RFC 9457).
type problemDocument struct {
	Type   string `json:"type"`
	Title  string `json:"title"` // the fault's code
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
}
