package strictjson

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// maxField bounds the field name in an error: longer than any field of Waggle, short enough that a client cannot fill
// a log with it.
const maxField = 100

// Decode checks b as Check does and stores it in v, which must be a non-nil pointer. Names match in their exact case
// only; Decode ignores unknown names, so that a protocol can grow. json.Unmarshaler, encoding.TextUnmarshaler and the
// json struct tags of encoding/json work as usual.
//
// The error is a *fault.Fault: that of Check, or fault.InvalidField with the path of the field (data.content) when a
// value does not fit its Go type. v may then be partly filled.
func Decode(b []byte, v any) error { return decode(b, v) }

// DecodeKnown is Decode for documents of which no member may go unheard, as approvals: it refuses unknown names, with
// fault.InvalidField and the path.
func DecodeKnown(b []byte, v any) error { return decode(b, v, json.RejectUnknownMembers(true)) }

func decode(b []byte, v any, options ...json.Options) error {
	if err := Check(b); err != nil {
		return err
	}
	err := json.Unmarshal(b, v, options...)
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	f := fault.New(fault.InvalidField).Wrap(err)
	if errors.Is(err, json.ErrUnknownName) {
		f = fault.Newf(fault.InvalidField, "Unknown field. Nothing was done. Remove the field.").Wrap(err)
	}
	if bad, ok := errors.AsType[*json.SemanticError](err); ok {
		return f.At(path(string(bad.JSONPointer)))
	}
	return f
}

// path returns a JSON pointer in the dotted form of errors.
func path(pointer string) string {
	s := strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
	if len(s) > maxField {
		s = strings.ToValidUTF8(s[:maxField], "")
	}
	return s
}
