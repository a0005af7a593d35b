package gateway

// problemDocument is an error answer (RFC 9457).
type problemDocument struct {
	Type   string `json:"type"`
	Title  string `json:"title"` // the fault's code
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
}
