package strictjson

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Check is Default.Check.
func Check(b []byte) error { return Default.Check(b) }

// Check reports whether b is one JSON value within the limits.
func (l Limits) Check(b []byte) error {
	if err := jsontext.Value(b).IsValid(); !err {
		return fault.New(fault.BadJSON)
	}
	return nil
}
