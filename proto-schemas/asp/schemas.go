package asp

import "embed"

// Schema is the bundle of JSON Schemas (2020-12) of the protocol. #/$defs/<role>.in.<type>
// is a message that a participant of the role sends, aliases included, #/$defs/<role>.out.<type>
// one that it is sent. It is generated from the structs and examples of this package.
//
//go:embed schema.json
var Schema string

// Examples holds the examples of the protocol's description, as they are:
// examples/<role>/in/<type>.json and examples/<role>/out/<type>.json. The description
// has none for agents.
//
//go:embed examples/*/*/*.json
var Examples embed.FS
