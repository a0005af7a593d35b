package team

import "embed"

// Schema is the bundle of JSON Schemas (2020-12) of the protocol: #/$defs/<type> for each
// message, in the flattened form where the server sends it, and for the envelope form
// #/$defs/AgentTeamStreamEvent (sockets of teams) and #/$defs/StreamEvent (sockets of
// agents). It is generated from the structs of this package.
//
//go:embed schema.json
var Schema string

// Examples holds the examples of the protocol's description, unchanged, and messages as recorded from its clients:
// examples/<type>.json or, for several of a type, examples/<type>-<what>.json.
//
//go:embed examples/*.json
var Examples embed.FS

// The names of the schemas of the envelope form.
const (
	EnvelopeSchema    = "AgentTeamStreamEvent"
	StreamEventSchema = "StreamEvent"
)
