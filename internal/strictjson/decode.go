package strictjson

import (
	"github.com/go-json-experiment/json"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Decode is Check followed by a decode in which names match in their exact case.
func Decode(b []byte, v any) error {
	if err := Check(b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fault.New(fault.InvalidField).Wrap(err)
	}
	return nil
}
