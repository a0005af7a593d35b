package input_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// TestInlineFilesAreBounded, and what is wrong with one is said of its place.
func TestInlineFilesAreBounded(t *testing.T) {
	for part, field := range map[string]string{
		`{"type":"image","source":{"type":"data","mimeType":"image/png","value":"not base64"}}`:                                      ".source.value",
		`{"type":"image","source":{"type":"data","mimeType":"image/png","value":""}}`:                                                ".source.value",
		`{"type":"image","source":{"type":"data","mimeType":"","value":"AAAA"}}`:                                                     ".source.mimeType",
		`{"type":"document","source":{"type":"data","mimeType":"text/plain","value":"/w=="}}`:                                        ".source.value",
		`{"type":"document","source":{"type":"data","mimeType":"text/plain","value":"` + strings.Repeat("QUFB", 30<<10) + `"}}`:      ".source.value",
		`{"type":"document","source":{"type":"data","mimeType":"application/pdf","value":"` + strings.Repeat("QUFB", 50<<10) + `"}}`: ".source.value",
		`{"type":"binary","mimeType":"image/png","data":"?"}`:                                                                        ".value",
		`{"type":"image","source":{"type":"data","mimeType":"image/png","value":"` + strings.Repeat("QUFB", 128<<10/3-1) + `"}}`:     "",
		`{"type":"image","source":{"type":"data","mimeType":"image/svg+xml","value":"` + strings.Repeat("QUFB", 40<<10/3) + `"}}`:    "",
		`{"type":"image","source":{"type":"url","value":"data:image/png;base64,AAAA"}}`:                                              "",
		`{"type":"image","source":{"type":"url","value":"/api/v1/sessions/s/files/0123"}}`:                                           "",
	} {
		_, err := input.ContentOf(&wire.Message{Content: []byte(`[{"type":"text","text":"a"},` + part + `]`)}, "messages[1]")
		if field == "" {
			require.NoError(t, err, part)
			continue
		}
		var f *fault.Fault
		require.ErrorAs(t, err, &f, part[:40])
		require.Equal(t, fault.InvalidField, f.Code)
		require.Equal(t, "messages[1].content[1]"+field, f.Field, part[:40])
	}
	two := `{"type":"image","source":{"type":"data","mimeType":"image/png","value":"` + strings.Repeat("QUFB", 70<<10/3) + `"}}`
	_, err := input.ContentOf(&wire.Message{Content: []byte(`[` + two + `,` + two + `]`)}, "messages[0]")
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, "messages[0].content[1].source.value", f.Field)
}

// TestATeamHasOptionsOfItsOwn: a request to a team does not set what the team sets.
func TestATeamHasOptionsOfItsOwn(t *testing.T) {
	for _, own := range []string{`"mode":"plan"`, `"budget":{"tokens":1}`} {
		in := wire.Input{ThreadID: "t", RunID: "r", Messages: []wire.Message{}, ForwardedProps: []byte(`{"waggle":{` + own + `}}`)}
		_, err := input.Check(in, input.To{Team: true})
		require.ErrorIs(t, err, fault.New(fault.InvalidField))
		_, err = input.Check(in, input.To{})
		require.NoError(t, err)
	}
}

// TestWhatAClientSaysIsKept: what a request says about its thread and its message can be read from what the log keeps.
func TestWhatAClientSaysIsKept(t *testing.T) {
	q, err := input.Check(wire.Input{
		ThreadID: "t", RunID: "r", ParentRunID: "p", Messages: []wire.Message{{ID: "m", Role: wire.RoleUser, Content: []byte(`"a"`)}},
		State: []byte(`{"a":1}`), ForwardedProps: []byte(`{"x":"<y>","waggle":{"clientId":"c"}}`),
	}, input.To{})
	require.NoError(t, err)
	require.Equal(t, "c", q.ClientID)
	require.Equal(t, input.Extra{RunID: "r", MessageID: "m", ParentRunID: "p", State: []byte(`{"a":1}`), Forwarded: []byte(`{"x":"<y>"}`)}, input.ExtraOf(q.Extra))
	require.Zero(t, input.ExtraOf([]byte(`{"orbit":{}}`)))
	require.Zero(t, input.ExtraOf(nil))
}

// TestMessagesThatAreNoneAreRefused, with their place: nothing that a person says is passed over without a word.
func TestMessagesThatAreNoneAreRefused(t *testing.T) {
	for message, field := range map[string]string{
		`{"id":"m","role":"alien","content":"a"}`:                                    ".role",
		`{"id":"m","role":"","content":"a"}`:                                         ".role",
		`{"id":"m","content":"a"}`:                                                   ".role",
		`{"role":"user","content":"a"}`:                                              ".id",
		`{"id":"","role":"user","content":"a"}`:                                      ".id",
		`{"id":"m","role":"user","content":7}`:                                       ".content",
		`{"id":"m","role":"user"}`:                                                   ".content",
		`{"id":"m","role":"user","content":{}}`:                                      ".content",
		`{"id":"m","role":"user","content":["a"]}`:                                   ".content[0]",
		`{"id":"m","role":"user","content":[{"type":"text","text":"a"},{"text":7}]}`: ".content[1]",
		`{"id":"m","role":"assistant","content":true}`:                               ".content",
		`{"id":"m","role":"system","content":[]}`:                                    ".content",
		`{"id":"m","role":"reasoning"}`:                                              ".content",
		`{"id":"m","role":"activity","content":"a"}`:                                 ".content",
		`{"id":"m","role":"tool","content":"a"}`:                                     ".toolCallId",
		`{"id":"m","role":"tool","toolCallId":"c","content":"a"}`:                    "",
		`{"id":"m","role":"tool","toolCallId":"c","content":[{"type":"text"}]}`:      "",
		`{"id":"m","role":"assistant"}`:                                              "",
		`{"id":"m","role":"assistant","content":null}`:                               "",
		`{"id":"m","role":"assistant","content":""}`:                                 "",
		`{"id":"m","role":"activity","content":{"a":1}}`:                             "",
		`{"id":"m","role":"developer","content":"a"}`:                                "",
	} {
		var m wire.Message
		require.NoError(t, json.Unmarshal([]byte(message), &m))
		_, err := input.Check(wire.Input{ThreadID: "t", RunID: "r", Messages: []wire.Message{{ID: "u", Role: wire.RoleUser, Content: []byte(`"a"`)}, m}}, input.To{})
		if field == "" {
			require.NoError(t, err, message)
			continue
		}
		var f *fault.Fault
		require.ErrorAs(t, err, &f, message)
		require.Equal(t, []any{fault.InvalidField, "messages[1]" + field}, []any{f.Code, f.Field}, message)
	}
}
