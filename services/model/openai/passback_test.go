package openai_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// sent returns the messages of a request.
func sent(t *testing.T, x *scripted.Exchange) (out []map[string]json.RawMessage) {
	t.Helper()
	var body struct {
		Messages []map[string]json.RawMessage `json:"messages"`
	}
	require.NoError(t, json.Unmarshal(x.Body, &body))
	return body.Messages
}

func done1(event.ToolCall) (string, bool) { return "ok", false }

// Members that a server sends beside text and calls come back to it with the results, unchanged, and to no other server.
func TestWhatServersWantBack(t *testing.T) {
	const call = `"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`
	for name, tc := range map[string]struct {
		lines []string
		want  map[string]string // members of the assistant's message
	}{
		"reasoning_content": {
			[]string{delta(`"reasoning_content":"I should read it. "`, ""), delta(`"reasoning_content":"Yes."`, ""), delta(call, "tool_calls"), done},
			map[string]string{"reasoning_content": `"I should read it. Yes."`},
		},
		"reasoning": {[]string{delta(`"reasoning":"Yes."`, ""), delta(call, "tool_calls"), done}, map[string]string{"reasoning": `"Yes."`}},
		"a signature of the call": {
			[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]`, "stop"), done},
			map[string]string{"tool_calls": `[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]`},
		},
		"a signature of the message": {
			[]string{delta(`"content":"So.","extra_content":{"google":{"thought_signature":"eA=="}}`, ""), delta(call, "tool_calls"), done},
			map[string]string{"extra_content": `{"google":{"thought_signature":"eA=="}}`},
		},
		"details in pieces": {
			[]string{
				delta(`"reasoning":"Let me","reasoning_details":[{"type":"reasoning.text","index":0,"format":"x","text":"Let me"}]`, ""),
				delta(`"reasoning":" see.","reasoning_details":[{"type":"reasoning.text","index":0,"text":" see."}]`, ""),
				delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"c2ln"},{"type":"reasoning.encrypted","index":1,"data":"ZQ==","id":"r1"}]`, ""),
				delta(call, "tool_calls"), done,
			},
			map[string]string{
				"reasoning":         `"Let me see."`,
				"reasoning_details": `[{"type":"reasoning.text","index":0,"format":"x","text":"Let me see.","signature":"c2ln"},{"type":"reasoning.encrypted","index":1,"data":"ZQ==","id":"r1"}]`,
			},
		},
		"nothing": {[]string{delta(call, "tool_calls"), done}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			m, srv := start(t, tc.lines...)
			req := modeltest.Ask("read")
			r, err := modeltest.Generate(t.Context(), t, m, req)
			require.NoError(t, err)
			next := modeltest.Answer(req, r, done1)
			_, err = modeltest.Generate(t.Context(), t, m, next)
			require.NoError(t, err)
			got := sent(t, srv.Exchanges()[1])[2]
			for _, member := range []string{"reasoning_content", "reasoning", "reasoning_details", "extra_content"} {
				if _, wanted := tc.want[member]; !wanted {
					require.NotContains(t, got, member)
				}
			}
			for member, want := range tc.want {
				require.JSONEq(t, want, string(got[member]))
			}

			other, otherServer := start(t, text("Hi"), done)
			_, err = modeltest.Generate(t.Context(), t, other, next)
			require.NoError(t, err)
			for _, member := range []string{"reasoning_content", "reasoning", "reasoning_details", "extra_content"} {
				require.NotContains(t, string(otherServer.Exchanges()[0].Body), `"`+member+`"`)
			}
		})
	}
}

// Reasoning without a call is not sent back: DeepSeek refuses it.
func TestReasoningWithoutCallsStays(t *testing.T) {
	m, srv := start(t, delta(`"reasoning_content":"hm"`, ""), text("Hi"), finish, done)
	req := modeltest.Ask("hello")
	r, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	require.Nil(t, r.PassBack)
	next := modeltest.Answer(req, r, nil)
	next.Messages = append(next.Messages, model.Message{Role: model.RoleUser, Content: "and now?"})
	_, err = modeltest.Generate(t.Context(), t, m, next)
	require.NoError(t, err)
	require.NotContains(t, string(srv.Exchanges()[1].Body), "reasoning")
}

// They are bounded.
func TestTooMuchToGiveBack(t *testing.T) {
	long := make([]byte, event.MaxPassBack)
	for i := range long {
		long[i] = 'x'
	}
	m, _ := start(t, delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"`+string(long)+`"}}}]`, "stop"), done)
	_, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("read"))
	require.ErrorIs(t, err, fault.New(fault.ModelBadReply))
}

// refusing is a server that refuses requests for which why gives a reason.
func refusing(why func(x *scripted.Exchange) (status int, body string)) scripted.Script {
	return func(x *scripted.Exchange) scripted.Reply {
		if status, body := why(x); status != 0 {
			return scripted.Reply{Status: status, Body: body, Header: http.Header{"Content-Type": {"application/json"}}}
		}
		return scripted.Stream(scripted.Text("Hello"))
	}
}

// Servers that refuse a member of the request are asked again without it. It is remembered once the request without it was
// answered.
func TestMembersThatServersRefuse(t *testing.T) {
	has := func(x *scripted.Exchange, member string) bool {
		var body map[string]json.RawMessage
		return json.Unmarshal(x.Body, &body) == nil && body[member] != nil
	}
	first := func(x *scripted.Exchange) string { return x.Prompt.Messages[0].Content }
	for name, tc := range map[string]struct {
		refuses func(x *scripted.Exchange) (int, string)
		asks    int // requests of the first answer
		omits   string
	}{
		"usage, named in a list": {func(x *scripted.Exchange) (int, string) {
			if has(x, "stream_options") {
				return 422, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`
			}
			return 0, ""
		}, 2, "stream_options"},
		"usage, unnamed": {func(x *scripted.Exchange) (int, string) {
			if has(x, "stream_options") {
				return 400, `{"error":"bad request"}`
			}
			return 0, ""
		}, 2, "stream_options"},
		"the system role": {func(x *scripted.Exchange) (int, string) {
			if x.Prompt.System != "" {
				return 400, `{"object":"error","message":"System role not supported","type":"BadRequestError","code":400}`
			}
			return 0, ""
		}, 2, ""},
		"both, one after the other": {func(x *scripted.Exchange) (int, string) {
			switch {
			case has(x, "stream_options"):
				return 400, `{"error":{"message":"Unknown field stream_options"}}`
			case x.Prompt.System != "":
				return 400, `{"error":{"message":"Only user and assistant roles are supported!"}}`
			}
			return 0, ""
		}, 3, "stream_options"},
		"a tool by its name": {func(x *scripted.Exchange) (int, string) {
			if len(x.Prompt.Tools) == 2 {
				return 400, `{"error":{"message":"Invalid schema for function 'workspace_list_files': must be an object"}}`
			}
			return 0, ""
		}, 2, ""},
		"all tools": {func(x *scripted.Exchange) (int, string) {
			if len(x.Prompt.Tools) > 0 {
				return 400, `{"error":"registry.ollama.ai/library/x does not support tools"}`
			}
			return 0, ""
		}, 2, "tools"},
	} {
		t.Run(name, func(t *testing.T) {
			m, srv := modeltest.Serve(t, open, model.Env{}, refusing(tc.refuses))
			r, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.NoError(t, err)
			require.Equal(t, "Hello", r.Text)
			require.Len(t, srv.Exchanges(), tc.asks)
			_, err = modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.NoError(t, err)
			all := srv.Exchanges()
			require.Len(t, all, tc.asks+1, "it is remembered")
			last := all[len(all)-1]
			if tc.omits != "" {
				require.False(t, has(last, tc.omits))
			}
			require.Contains(t, last.Prompt.System+first(last), "You are a test.", "the instructions are not lost")
			require.Contains(t, string(last.Body), "hello")
		})
	}
}

// A tool that the server takes offence at is offered again once it has changed, and the caller learns what was left out.
func TestALeftOutToolComesBack(t *testing.T) {
	m, srv := modeltest.Serve(t, open, model.Env{}, refusing(func(x *scripted.Exchange) (int, string) {
		for _, tool := range x.Prompt.Tools {
			if tool.Name == "workspace_read_file" && strings.Contains(string(tool.InputSchema), "required") {
				return 400, `{"error":{"message":"Invalid schema for function 'workspace_read_file'"}}`
			}
		}
		return 0, ""
	}))
	req := modeltest.Ask("hello")
	for range 2 {
		r, err := modeltest.Generate(t.Context(), t, m, req)
		require.NoError(t, err)
		require.Len(t, r.LeftOut, 1)
		require.Equal(t, "workspace_read_file", r.LeftOut[0].Tool)
	}
	req.Tools = modeltest.Tools()
	req.Tools[1].InputSchema = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)
	r, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	require.Empty(t, r.LeftOut)
	require.Len(t, srv.Exchanges(), 4)
}

// A server that wants reasoning with all calls gets a stand-in where a message has none, as those of another model do.
func TestCallsWithoutReasoning(t *testing.T) {
	m, srv := modeltest.Serve(t, open, model.Env{}, refusing(func(x *scripted.Exchange) (int, string) {
		for _, msg := range sent(t, x) {
			if msg["tool_calls"] != nil && msg["reasoning_content"] == nil {
				return 400, `{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"}}`
			}
		}
		return 0, ""
	}))
	req := modeltest.Ask("read")
	req = modeltest.Answer(req, model.Reply{ToolCalls: []event.ToolCall{{ID: "a", Name: "f", Arguments: []byte("{}")}}}, done1)
	_, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	require.Len(t, srv.Exchanges(), 2)
}

// Users and assistants take turns, blank messages of the assistant are left out, and results follow their calls.
func TestTurns(t *testing.T) {
	m, srv := start(t, text("Hi"), done)
	req := modeltest.Ask("one")
	req.Messages = append(req.Messages,
		model.Message{Role: model.RoleUser, Content: "two"},
		model.Message{Role: model.RoleAssistant, Content: "\n\n"},
		model.Message{Role: model.RoleUser, Content: " "},
		model.Message{Role: model.RoleAssistant, Content: "a"},
		model.Message{Role: model.RoleAssistant, Content: "\n", ToolCalls: []event.ToolCall{{ID: "c", Name: "f", Arguments: []byte("{}")}}},
		model.Message{Role: model.RoleTool, ToolCallID: "c", Content: ""},
		model.Message{Role: model.RoleUser, Content: "three"},
	)
	_, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	raw, err := json.Marshal(sent(t, srv.Exchanges()[0]))
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"role":"system","content":"You are a test."},
		{"role":"user","content":"one\n\ntwo\n\n(empty message)"},
		{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c","content":"(no output)"},
		{"role":"user","content":"three"}
	]`, string(raw))
}
