package site

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	got, err := Parse("# T\n\n<!-- run: until ready -->\n```sh\nwaggle up\n```\n\n1. a step\n\n   ```python [a.py]\n   if x:\n       y\n   ```\n" +
		"<!-- type: y -->\n<!-- not run: needs docker -->\n```sh\ndocker ps\n```\n")
	require.NoError(t, err)
	require.Equal(t, []Block{
		{Line: 4, Lang: "sh", Text: "waggle up\n", Run: "until ready"},
		{Line: 10, Lang: "python", Name: "a.py", Text: "if x:\n    y\n"},
		{Line: 14, Do: "type", Value: "y"},
		{Line: 16, Lang: "sh", Text: "docker ps\n", Not: "needs docker"},
	}, got)
	for _, page := range []string{"```sh\nx\n", "<!-- run: background -->\ntext\n"} {
		_, err := Parse(page)
		require.Error(t, err, page)
	}
}

func TestMissing(t *testing.T) {
	const got = "\x1b[1mSESSION\x1b[0m   STATE\n01a2-b   idle\nmore\nend \n"
	for want, missing := range map[string]string{
		"SESSION   STATE\n…   idle\nend": "",
		"SESSION…\n…\nend":               "",
		"end\nmore":                      "more",
		"SESSION":                        "SESSION",
		"idle":                           "idle",
		"sess…":                          "sess…",
	} {
		require.Equal(t, missing, Missing(want, got), want)
	}
}
