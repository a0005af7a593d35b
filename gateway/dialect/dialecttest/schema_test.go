package dialecttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/bundle"
)

// TestBundles: every definition compiles without anything from outside, and the root
// refuses other documents than messages.
func TestBundles(t *testing.T) {
	for _, b := range bundle.All() {
		root, err := definition(b.JSON(), "#")
		require.NoError(t, err, b.Name)
		for _, doc := range []string{`{"type":"no.such"}`, `{"event":"no.such"}`, `{}`, `[]`, `null`, `"x"`} {
			require.Error(t, schemas{"root": root}.check("root", []byte(doc)), "%s: %s", b.Name, doc)
		}
	}
	_, err := definition(`{"$ref":"https://example.com/schema"}`, "#")
	require.Error(t, err)
	_, err = compile(`{"anyOf":[{"$ref":"#/$defs/none"}]}`, "")
	require.Error(t, err)
}
