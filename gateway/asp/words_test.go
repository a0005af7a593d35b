package asp

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestACommandKnowsItsFrame: whatever stands around the id of a command, the id of the
// frame is found again, or none where it does not fit.
func TestACommandKnowsItsFrame(t *testing.T) {
	legal := regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	rapid.Check(t, func(r *rapid.T) {
		frameID := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9_.-]{1,80}`), rapid.StringMatching(`(a|_r_|_x_|\.){1,9}`)).Draw(r, "frame")
		fresh := rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).Draw(r, "fresh")
		made := commandID(fresh, frameID)
		require.Regexp(r, legal, made)
		want := frameID
		if made == fresh {
			require.True(r, frameID == "" || len(frameID) > codedID)
			want = ""
		}
		for _, around := range []string{made, made + ".aside", "default.task." + made + ".2", made + ".child.accepted"} {
			require.Equal(r, want, requestOf(around), "%s", around)
		}
	})
	for _, none := range []string{"", "x", "0194.aside", "abc_x_!"} {
		require.Empty(t, requestOf(none))
	}
}

// TestWhatIsAFailure: only a result that is nothing but an error is one.
func TestWhatIsAFailure(t *testing.T) {
	for result, want := range map[string]failure{
		`{"error":"boom"}`: {text: "boom"},
		`{"error":"boom","code":"TIMEOUT","stack":"x"}`:         {text: "boom", code: "TIMEOUT"},
		`{"error":{"message":"m","code":"A_1"}}`:                {text: "m", code: "A_1"},
		`{"error":{"error":"inner"},"details":[1]}`:             {text: "inner", details: json.RawMessage(`[1]`)},
		`{"error":{"n":1},"code":"lower case"}`:                 {text: `{"n":1}`},
		`{"error":true,"details":null,"timestamp":"now"}`:       {text: "true"},
		`{"error":"boom","status":"failed","metadata":{"a":1}}`: {text: "boom"},
	} {
		got, ok := failureOf(json.RawMessage(result))
		require.True(t, ok, result)
		require.Equal(t, want, got, result)
	}
	for _, result := range []string{``, `null`, `1`, `"error"`, `[]`, `{}`, `{"error":null}`, `{"error":""}`, `{"error":false}`, `{"error":"boom","partial":1}`} {
		_, ok := failureOf(json.RawMessage(result))
		require.False(t, ok, result)
	}
}

// TestIDsOfServices: a service without an id has one made of its name.
func TestIDsOfServices(t *testing.T) {
	for name, want := range map[string]string{"My Service!": "my-service", "LLM": "llm", "a--b_c": "a-b-c", "名": ""} {
		require.Equal(t, want, slug(name))
	}
}
