package openapi

import (
	"net/http"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Route is a request that the API answers, with its handler.
type Route struct {
	Method, Path string // Path is below the prefix
	ID           string // operationId of the document
	Tag          string
	Summary      string
	Public       bool // answers requests without credentials
	Query        []Parameter
	Header       []Parameter
	Body         any    // zero value of the type of the request's body; nil: no body
	Required     bool   // the body
	Example      string // of the body: a JSON text
	Answers      []Answer
	Faults       []fault.Code // besides those that every route has

	Handler http.HandlerFunc // nil: the route is not served
}

// Parameter is a parameter of the query, or a header.
type Parameter struct {
	Name, About string
	Type        string // JSON Schema type
	Maximum     int    // of a number from 1; 0: no bound
	Many        bool   // the parameter may be repeated
}

// Answer is a successful response.
type Answer struct {
	Status int
	About  string
	Type   any      // zero value of the body's type; nil: no JSON
	Media  string   // of a body that is not application/json
	Images []string // media types that an answer of MediaBytes may have instead
}

// Tag is a group of operations.
type Tag struct {
	Name  string `json:"name"`
	About string `json:"description"`
}
