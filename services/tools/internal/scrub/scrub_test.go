package scrub_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/services/tools/internal/scrub"
)

// most is enough for every text here.
const most = 4000

func TestWhatLooksLikeAKeyIsRemoved(t *testing.T) {
	for text, want := range map[string]string{
		"fatal: set API_KEY to a key of your account": "fatal: set API_KEY to a key of your account",
		"ModuleNotFoundError: No module named 'mcp'":  "ModuleNotFoundError: No module named 'mcp'",
		"invalid token: expected a string":            "invalid token: expected a string",
		"Error: Cannot find module '/home/u/.nvm/versions/node/v20.11.0/lib/node_modules/@scope/server-filesystem/dist/index.js'": "Error: Cannot find module '/home/u/.nvm/versions/node/v20.11.0/lib/node_modules/@scope/server-filesystem/dist/index.js'",
		"token=abcdef":                              "token=[redacted]",
		"API_KEY: k12345":                           "API_KEY: [redacted]",
		`{"password": "hunter2"}`:                   `{"password": "[redacted]"}`,
		"Authorization: Bearer abcdefgh1":           "Authorization: Bearer [redacted]",
		"Incorrect API key: sk-proj-a1b2c3d4":       "Incorrect API key: [redacted]",
		"got ghp_abcdefgh12345678":                  "got [redacted]",
		"jwt eyJhbGciOiJI.eyJzdWIi.c2ln end":        "jwt [redacted] end",
		"at postgres://user:pass@db:5432/x":         "at postgres://[redacted]@db:5432/x",
		"GET https://x.example/a?key=1&b=2 failed":  "GET https://x.example/a?[redacted] failed",
		"id 0123456789abcdef0123456789abcdef":       "id [redacted]",
		"\x1b[31mred\x1b[0m \x1b]0;title\x07text\r": "red text",
		"a\u202eb\u200bc\x00d\te":                   "abcd e",
		"one\ntwo":                                  "one\ntwo",
	} {
		require.Equal(t, want, scrub.Scrubber{}.Text(text, most))
	}
}

func TestValuesAreRemoved(t *testing.T) {
	s := scrub.New("1", "yes", "abcd", "long value", "long value with more", "line one\nline two is", "a b&c=d/e")
	for text, want := range map[string]string{
		"1 yes":                       "1 yes",
		"abcd abcd,abcde":             "[redacted] [redacted],abcde",
		"xlong valuex":                "x[redacted]x",
		"a long value with more text": "a [redacted] text",
		"line two is":                 "[redacted]",
		"?q=a+b%26c%3Dd%2Fe":          "?q=[redacted]",
	} {
		require.Equal(t, want, s.Text(text, most))
	}
}

func TestTheTextIsCutAfterTheSecretsAreGone(t *testing.T) {
	require.Equal(t, "[reda...", scrub.New("a secret value").Text("a secret value", 5))
}

// No value of eight characters or more is left of any text, wherever it stands, and no control character.
func TestAnyValueIsRemoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(rapid.StringMatching(`[!-~äß]{8,40}`), 1, 4).Draw(t, "secrets")
		var text strings.Builder
		for _, s := range secrets {
			if strings.Contains(scrub.Gone, s) {
				t.Skip("a part of the placeholder")
			}
			text.WriteString(rapid.String().Draw(t, "before"))
			text.WriteString(s)
		}
		got := scrub.New(secrets...).Text(text.String(), most)
		for _, s := range secrets {
			if overlaps(s) {
				continue
			}
			require.NotContains(t, got, s)
		}
		require.False(t, strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }), "%q", got)
	})
}

// overlaps reports whether the placeholder and what stands beside it may make up the value anew.
func overlaps(s string) bool {
	return strings.Contains(s, "[") || strings.Contains(s, "]")
}

func FuzzText(f *testing.F) {
	f.Add("a secret: \x1b[31mabcdefgh", "abcdefgh")
	f.Fuzz(func(t *testing.T, text, secret string) {
		got := scrub.New(secret).Text(text, most)
		require.LessOrEqual(t, len(got), most+3)
		require.False(t, strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }), "%q", got)
	})
}
