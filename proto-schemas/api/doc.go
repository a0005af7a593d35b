// Package api holds the bodies of the HTTP API below /api/v1. Its comments are the descriptions in the API's OpenAPI
// document.
package api

import _ "embed" // For the schemas.

//go:generate go run ../cmd/schemagen

// Schema is the bundle of JSON Schemas (2020-12) of the bodies: #/$defs/NAME for each Go type. It is generated from the
// structs of this package and of those that they refer to.
//
//go:embed schema.json
var Schema string

// Problem is the body of every failed request (RFC 9457).
type Problem struct {
	Type   string `json:"type"`            // about:blank
	Title  string `json:"title"`           // code of the error catalogue
	Status int    `json:"status"`          // of the response
	Detail string `json:"detail"`          // for people
	Field  string `json:"field,omitempty"` // the parameter or member of the body that is wrong

	InputID    string `json:"input_id,omitempty"`    // the question that was answered before
	AnsweredBy string `json:"answered_by,omitempty"` // principal whose answer counts
	AnsweredOn string `json:"answered_on,omitempty"` // its device
	Decision   string `json:"decision,omitempty"`    // its answer: approve, modify, reject
}

// Accepted answers a request that a service carries out soon after.
type Accepted struct {
	Accepted  bool   `json:"accepted"`
	CommandID string `json:"command_id"`
	MessageID string `json:"message_id,omitempty"` // of a message
	RunID     string `json:"run_id,omitempty"`     // the run that it concerns
	Seq       uint64 `json:"seq,omitempty"`        // of the event in the log that carried it out
}

// SchemaList lists the bundles of JSON Schemas.
type SchemaList struct {
	Schemas []SchemaRef `json:"schemas"`
}

// SchemaRef names a bundle of JSON Schemas.
type SchemaRef struct {
	Name string `json:"name"` // of the dialect
	ID   string `json:"$id"`  // of the schema
	URL  string `json:"url"`  // path on this server
}
