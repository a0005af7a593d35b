package team

import "embed"

// Schemas holds one JSON Schema (2020-12) for every message: schema/in/<type>.json for
// what clients send, schema/out/<type>.json for what they are sent in the flattened
// form, and for the envelope form schema/out/AgentTeamStreamEvent.json (sockets of
// teams) and schema/out/StreamEvent.json (sockets of agents).
//
//go:embed schema/*/*.json
var Schemas embed.FS

// Examples holds the examples of the protocol's description, unchanged, and messages as
// its clients were seen to send them: examples/<type>.json or, where there are several,
// examples/<type>-<what>.json.
//
//go:embed examples/*.json
var Examples embed.FS

// The names of the schemas of the envelope form.
const (
	EnvelopeSchema    = "AgentTeamStreamEvent"
	StreamEventSchema = "StreamEvent"
)
