package narrate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestWhatAPlannerTells: people read its reasons and what it says around the plan, and no JSON.
func TestWhatAPlannerTells(t *testing.T) {
	for text, want := range map[string]string{
		`{"reasoning":"First, then.","tasks":[{"id":"a","reasoning":"hidden"}],"summary":"s"}`: "First, then.",
		`{"tasks":[],"summary":"reasoning","Rationale":"a \"b\"\n\u00e4\ud83d\ude00\/"}`:       "a \"b\"\nä😀/",
		"```json\n{\"tasks\":[],\"reasoning\":\"why\"}\n```":                                   "why",
		"Here is it:\n\n```json\n{\"tasks\":[\"}\"]}\n```\nThat is all.\n":                     "Here is it:\n\nThat is all.",
		`{"reasoning":{"a":"b"},"tasks":["reasoning",":","x"]}`:                                "",
		`{"reasoning":"cut o`:   "cut o",
		`{"reasoning":"\ud83dx`: "x",
		`no plan`:               "no plan",
		``:                      "",
	} {
		got := Planned(text)
		require.Equal(t, want, strings.TrimSpace(got), text)
	}
}

// TestPlannersTellTheSameInAnyPieces, and the reason of a plan exactly.
func TestPlannersTellTheSameInAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		why := rapid.String().Draw(t, "why")
		plan, err := json.Marshal(map[string]any{
			"reasoning": why, "summary": rapid.String().Draw(t, "summary"), "a": []any{map[string]any{"reasoning": rapid.String().Draw(t, "inner")}},
		})
		require.NoError(t, err)
		require.Equal(t, why, Planned(string(plan)))
		text := rapid.OneOf(rapid.Just(string(plan)), rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("{}[]\":,\\u`\nab reasoning")))).Draw(t, "text")
		var p Planner
		var out strings.Builder
		for rest := []rune(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			out.WriteString(p.Tell(string(rest[:n])))
			rest = rest[n:]
		}
		require.Equal(t, Planned(string([]rune(text))), out.String())
	})
}
