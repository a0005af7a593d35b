package asp

import "embed"

// Schemas holds one JSON Schema (2020-12) for every message of every role:
// schema/<role>/in/<type>.json for what peers send, aliases included, and
// schema/<role>/out/<type>.json for what they are sent.
//
//go:embed schema/*/*/*.json
var Schemas embed.FS

// Examples holds the examples of the protocol's description, as they are:
// examples/<role>/in/<type>.json and examples/<role>/out/<type>.json. The description
// has none for agents.
//
//go:embed examples/*/*/*.json
var Examples embed.FS
