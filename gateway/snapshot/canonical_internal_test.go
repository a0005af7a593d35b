package snapshot

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCanonicalValues has the values that a browser reads and writes in a way of its own: JSON.stringify(JSON.parse(text)), with
// sorted members.
func TestCanonicalValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                               ``,
		`{`:                              ``,
		`null`:                           `null`,
		`{"b":1,"a":{"d":[],"c":true}}`:  `{"a":{"c":true,"d":[]},"b":1}`,
		`{"a":1,"a":2}`:                  `{"a":2}`,
		`-0`:                             `0`,
		`1e400`:                          `null`,
		`[-1e400,1e-400]`:                `[null,0]`,
		`9007199254740993`:               `9007199254740992`,
		`1e21`:                           `1e+21`,
		`100000000000000000000`:          `100000000000000000000`,
		`0.000001`:                       `0.000001`,
		`1E-7`:                           `1e-7`,
		`"<&>\u2028"`:                    "\"<&>\u2028\"",
		`"\u0000\u001f\b\t\n\f\r\"\\\/"`: `"\u0000\u001f\b\t\n\f\r\"\\/"`,
		`{"\ud83d\ude00":1,"\ufb33":2}`:  "{\"\U0001F600\":1,\"\uFB33\":2}", // by UTF-16 units
	} {
		require.Equal(t, want, string(canonical(json.RawMessage(text))), text)
	}
}
