package strict

import "github.com/waggle-dev/waggle/proto-schemas/fault"

// Wrong returns the fault of a member of a request that has to be something else.
func Wrong(field, rule string) *fault.Fault {
	return fault.Newf(fault.InvalidField, "%s must be %s. Correct it and send the request again.", field, rule).At(field).Unlike(rule, nil)
}
