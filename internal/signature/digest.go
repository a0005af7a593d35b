package signature

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Digest binds a decision to the contents of a call: see event.CallDigest.
func Digest(tool string, arguments json.RawMessage) string { return event.CallDigest(tool, arguments) }
