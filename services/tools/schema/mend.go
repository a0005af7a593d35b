package schema

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxRounds bounds the attempts at compiling: each finds all faults of the places that it reaches, and faults within faults
// are rare.
const maxRounds = 8

// mend compiles a document without the keywords that cannot be compiled. The rest accepts everything that the whole would
// accept.
func (m *mender) mend() *jsonschema.Schema {
	m.translate()
	m.dropPatterns()
	for _, again := range []func(){m.dropForeign, m.dropNames} {
		again()
		for range maxRounds {
			m.loosen()
			s, err := strict(m.root, m.patterns)
			if err == nil {
				return s
			}
			if !m.dropInvalid(err) {
				break
			}
		}
	}
	_, err := strict(m.root, m.patterns)
	m.note("", fmt.Sprintf("%v", err))
	s, _ := strict(map[string]any{}, m.patterns)
	return s
}
