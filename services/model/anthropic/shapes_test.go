package anthropic_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

const (
	thinks   = `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`
	thought  = `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I read it."}}`
	signed   = `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`
	redacted = `{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZW5j"}}`
	toolUse  = `{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`
	toolArgs = `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}`
)

func ok(event.ToolCall) (string, bool) { return "ok", false }

// assistant returns the content of the assistant's message in a request.
func assistant(t *testing.T, x *scripted.Exchange) string {
	t.Helper()
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(x.Body, &body))
	for _, m := range body.Messages {
		if m.Role == "assistant" {
			return string(m.Content)
		}
	}
	return ""
}

// Thinking goes back with the calls that follow from it, unchanged and in its order, to the server that sent it.
func TestThinkingGoesBack(t *testing.T) {
	m, srv := start(t, begin, thinks, thought, signed, redacted,
		`{"type":"content_block_start","index":5,"content_block":{"type":"text","text":"Let me look."}}`, toolUse, toolArgs, end("tool_use"), stop)
	req := modeltest.Ask("read")
	r, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	require.Equal(t, "I read it.", r.Reasoning)
	require.Equal(t, "Let me look.", r.Text)
	next := modeltest.Answer(req, r, ok)
	_, err = modeltest.Generate(t.Context(), t, m, next)
	require.NoError(t, err)
	require.JSONEq(t, `[{"type":"thinking","thinking":"I read it.","signature":"c2ln"},{"type":"redacted_thinking","data":"ZW5j"},
		{"type":"text","text":"Let me look."},{"type":"tool_use","id":"a","name":"f","input":{"n":1}}]`, assistant(t, srv.Exchanges()[1]))

	other, otherServer := start(t, begin, block, hi, end("end_turn"), stop)
	_, err = modeltest.Generate(t.Context(), t, other, next)
	require.NoError(t, err)
	require.JSONEq(t, `[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"a","name":"f","input":{"n":1}}]`, assistant(t, otherServer.Exchanges()[0]))
}

// Calls that got other ids meanwhile keep their places among the thoughts.
func TestThinkingBetweenCalls(t *testing.T) {
	m, srv := start(t, begin, thinks, thought, signed, toolUse, toolArgs,
		`{"type":"content_block_start","index":3,"content_block":{"type":"thinking","thinking":"More.","signature":"bW9yZQ=="}}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"b","name":"g","input":{"k":2}}}`, end("tool_use"), stop)
	req := modeltest.Ask("read")
	r, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	for i := range r.ToolCalls {
		r.ToolCalls[i].ID = "call_" + r.ToolCalls[i].ID
	}
	_, err = modeltest.Generate(t.Context(), t, m, modeltest.Answer(req, r, ok))
	require.NoError(t, err)
	require.JSONEq(t, `[{"type":"thinking","thinking":"I read it.","signature":"c2ln"},{"type":"tool_use","id":"call_a","name":"f","input":{"n":1}},
		{"type":"thinking","thinking":"More.","signature":"bW9yZQ=="},{"type":"tool_use","id":"call_b","name":"g","input":{"k":2}}]`, assistant(t, srv.Exchanges()[1]))
}

// A model that pauses continues when it is asked again with what it said, and both texts are one answer.
func TestAPause(t *testing.T) {
	searches := `{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}`
	query := `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"bees\"}"}}`
	first := stream(begin, block, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Searching for "}}`, searches, query, end("pause_turn"), stop)
	second := stream(begin, block, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"bees."}}`, end("end_turn"), stop)
	m, srv := modeltest.Serve(t, open, model.Env{}.With("anthropic", model.Access{Key: "test-key"}), scripted.Sequence(first, second))
	r, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("search"))
	require.NoError(t, err)
	require.Equal(t, "Searching for bees.", r.Text)
	require.Equal(t, model.StopEnd, r.StopReason)
	require.EqualValues(t, 18, r.Usage.OutputTokens, "both are paid for")
	require.JSONEq(t, `[{"type":"text","text":"Searching for "},{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"bees"}}]`, assistant(t, srv.Exchanges()[1]))
}

func stream(events ...string) scripted.Reply {
	body := ""
	for _, e := range events {
		body += "data: " + e + "\n\n"
	}
	return modeltest.Stream(body)(nil)
}

// Failures and cut answers that look like whole ones.
func TestNoWholeAnswers(t *testing.T) {
	blank := `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\n\n"}}`
	for name, tc := range map[string]struct {
		events []string
		code   fault.Code
		retry  bool
	}{
		"white space":               {[]string{begin, block, blank, end("end_turn"), stop}, fault.ModelNoAnswer, true},
		"nothing":                   {[]string{begin, end("end_turn"), stop}, fault.ModelNoAnswer, true},
		"a refusal without a word":  {[]string{begin, end("refusal"), stop}, fault.ModelContentRefused, false},
		"thinking alone, the limit": {[]string{begin, thinks, thought, end("max_tokens"), stop}, fault.ModelNoAnswer, false},
		"an error of a gateway":     {[]string{begin, block, hi, `{"error":{"message":"upstream","code":502}}`}, fault.ModelFailed, true},
		"a failure as the end":      {[]string{begin, block, hi, end("error"), stop}, fault.ModelFailed, true},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := start(t, tc.events...)
			_, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			f, ok := errors.AsType[*model.Failure](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, tc.code, f.Fault.Code, "%v", err)
			require.Equal(t, tc.retry, f.Retry)
		})
	}
}

// Odd streams that hold a whole answer.
func TestShapesOfAnswers(t *testing.T) {
	usage := `"usage":{"input_tokens":5.0,"output_tokens":9.0}`
	for name, tc := range map[string]struct {
		events []string
		want   model.Reply
	}{
		"an unknown end": {[]string{block, hi, end("moonstone"), stop}, model.Reply{Text: "Hi", StopReason: model.StopOther, StopDetail: "moonstone"}},
		"a call that is cut": {
			[]string{toolUse, `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\""}}`, end("max_tokens"), stop},
			model.Reply{StopReason: model.StopLength, ToolCalls: []event.ToolCall{{ID: "a", Name: "f", Arguments: json.RawMessage(`"{\"n\""`)}}},
		},
		"fractions, and halves of a character": {
			[]string{
				`{"type":"message_start","message":{"model":"x",` + usage + `}}`, block,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\udc1d"}}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},` + usage + `}`, stop,
			},
			model.Reply{Text: "🐝", StopReason: model.StopEnd, Usage: model.Usage{InputTokens: 5, OutputTokens: 9, Known: true}},
		},
		"tokens that are none": {
			[]string{`{"type":"message_start","message":{"model":"x","usage":{"input_tokens":-1,"output_tokens":0}}}`, block, hi, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":-7}}`, stop},
			model.Reply{Text: "Hi", StopReason: model.StopEnd},
		},
		"not streamed": {
			[]string{`{"type":"message","model":"x","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn",` + usage + `}`},
			model.Reply{Text: "Hi", StopReason: model.StopEnd, Usage: model.Usage{InputTokens: 5, OutputTokens: 9, Known: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := start(t, tc.events...)
			got, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.NoError(t, err)
			for i := range got.ToolCalls {
				require.Contains(t, got.ToolCalls[i].Invalid, "limit of tokens")
				got.ToolCalls[i].Invalid = ""
			}
			tc.want.Model = "x"
			require.Equal(t, tc.want, got)
		})
	}
}

// Blank texts never go to the server, which refuses them, and neighbours of one role are joined.
func TestBlankTexts(t *testing.T) {
	m, srv := start(t, begin, block, hi, end("end_turn"), stop)
	req := modeltest.Ask("blank")
	req.System = " "
	req.Messages = []model.Message{
		{Role: model.RoleAssistant, Content: "Welcome."},
		{Role: model.RoleUser, Content: "blank"},
		{Role: model.RoleAssistant, Content: "\n\n"},
		{Role: model.RoleUser, Content: "\t"},
		{Role: model.RoleAssistant, Content: "\n", ToolCalls: []event.ToolCall{{ID: "a", Name: "f", Arguments: []byte("{}")}}},
		{Role: model.RoleTool, ToolCallID: "a", Content: "\n", IsError: true},
	}
	req.Tools = nil
	_, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	var body map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(srv.Exchanges()[0].Body, &body))
	require.NotContains(t, body, "system")
	require.JSONEq(t, `[
		{"role":"user","content":[{"type":"text","text":"(The conversation begins with a message of the assistant.)"}]},
		{"role":"assistant","content":[{"type":"text","text":"Welcome."}]},
		{"role":"user","content":[{"type":"text","text":"blank"},{"type":"text","text":"(empty message)","cache_control":{"type":"ephemeral"}}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"(no output)"}],"cache_control":{"type":"ephemeral"}}]}
	]`, string(body["messages"]))
}

// A compatible server that does not know cache_control is asked again without, and that is remembered.
func TestAServerWithoutACache(t *testing.T) {
	m, srv := modeltest.Serve(t, open, model.Env{}.With("anthropic", model.Access{Key: "test-key"}), func(x *scripted.Exchange) scripted.Reply {
		if json.Valid(x.Body) && containsCache(x.Body) {
			return scripted.Fail(400, "invalid_request_error", "messages.0.content.0.cache_control: Extra inputs are not permitted")
		}
		return scripted.Stream(scripted.Text("Hello"))
	})
	for range 2 {
		_, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
		require.NoError(t, err)
	}
	require.Len(t, srv.Exchanges(), 3)
}

func containsCache(body []byte) bool {
	var doc any
	return json.Unmarshal(body, &doc) == nil && has(doc, "cache_control")
}

func has(doc any, member string) bool {
	switch doc := doc.(type) {
	case map[string]any:
		for name, v := range doc {
			if name == member || has(v, member) {
				return true
			}
		}
	case []any:
		for _, v := range doc {
			if has(v, member) {
				return true
			}
		}
	}
	return false
}
