package strictjson

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical is Default.Canonical.
func Canonical(b []byte) ([]byte, error) { return Default.Canonical(b) }

// Canonical checks b as Check does and returns the canonical form of the document: names sorted, no white space, the
// shortest escapes. The form follows RFC 8785, except that integers keep all their digits. b is not modified. The
// error is that of Check.
func (l Limits) Canonical(b []byte) ([]byte, error) {
	if err := l.Check(b); err != nil {
		return nil, err
	}
	v := jsontext.Value(bytes.Clone(b))
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return nil, badJSON("syntax error", 0)
	}
	return v, nil
}
