package openai_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// start returns a model whose server answers every request with these lines.
func start(t *testing.T, lines ...string) (model.Model, *scripted.Server) {
	t.Helper()
	return modeltest.Serve(t, open, model.Env{}, modeltest.Stream(strings.Join(lines, "\n")+"\n"))
}

func text(s string) string {
	return `data: {"choices":[{"index":0,"delta":{"content":"` + s + `"}}]}` + "\n"
}

func call(fields string) string {
	return `data: {"choices":[{"index":0,"delta":{"tool_calls":[{` + fields + `}]}}]}` + "\n"
}

const (
	done   = "data: [DONE]\n"
	finish = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n"
)

// The model tolerates omissions, additions and errors of servers that "speak OpenAI".
func TestTolerance(t *testing.T) {
	a, b := event.ToolCall{ID: "a", Name: "f", Arguments: []byte(`{"n":1}`)}, event.ToolCall{ID: "b", Name: "f", Arguments: []byte(`{"n":2}`)}
	for name, tc := range map[string]struct {
		lines []string
		want  model.Reply
	}{
		"no finish reason": {[]string{text("Hi"), done}, model.Reply{Text: "Hi", StopReason: model.StopEnd}},
		"no [DONE]":        {[]string{text("Hi"), finish}, model.Reply{Text: "Hi", StopReason: model.StopEnd}},
		"comments and other fields": {
			[]string{": PROCESSING\n", "retry: 3\n", "id: 7\nevent: x\n" + text("Hi"), `data: {"choices":[],"x_new":{"a":[1]}}` + "\n", done},
			model.Reply{Text: "Hi", StopReason: model.StopEnd},
		},
		"carriage returns": {[]string{strings.ReplaceAll(text("Hi")+"\n"+done, "\n", "\r\n")}, model.Reply{Text: "Hi", StopReason: model.StopEnd}},
		"null members": {
			[]string{`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":null},"finish_reason":null}],"usage":null,"error":null}` + "\n", text("Hi"), done},
			model.Reply{Text: "Hi", StopReason: model.StopEnd},
		},
		"usage in every chunk": {
			[]string{
				`data: {"choices":[{"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}` + "\n",
				`data: {"choices":[{"delta":{"content":"!"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}` + "\n", done,
			},
			model.Reply{Text: "Hi!", StopReason: model.StopEnd, Usage: model.Usage{InputTokens: 5, OutputTokens: 2, Known: true}},
		},
		"the model it really was": {
			[]string{`data: {"model":"x-2026","choices":[{"delta":{"content":"Hi"}}]}` + "\n", done},
			model.Reply{Text: "Hi", StopReason: model.StopEnd, Model: "x-2026"},
		},
		"reasoning is not text": {
			[]string{`data: {"choices":[{"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}` + "\n", text("Hi"), done},
			model.Reply{Text: "Hi", Reasoning: "hm", StopReason: model.StopEnd},
		},
		"other choices": {
			[]string{`data: {"choices":[{"index":1,"delta":{"content":"no"}}]}` + "\n", text("Hi"), done},
			model.Reply{Text: "Hi", StopReason: model.StopEnd},
		},
		"refusal": {
			[]string{`data: {"choices":[{"delta":{"refusal":"No."}}]}` + "\n", done},
			model.Reply{Text: "No.", StopReason: model.StopRefused},
		},
		"filter": {
			[]string{text("Hi"), `data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}` + "\n", done},
			model.Reply{Text: "Hi", StopReason: model.StopFiltered},
		},
		"calls end with stop": {
			[]string{call(`"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}`), finish, done},
			model.Reply{ToolCalls: []event.ToolCall{a}, StopReason: model.StopToolCalls},
		},
		"every call has index 0": {
			[]string{
				call(`"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}`),
				call(`"index":0,"id":"b","function":{"name":"f","arguments":"{\"n\":2}"}`), done,
			},
			model.Reply{ToolCalls: []event.ToolCall{a, b}, StopReason: model.StopToolCalls},
		},
		"no index, no id": {
			[]string{call(`"function":{"name":"f","arguments":"{\"n\":1}"}`), call(`"function":{"name":"f","arguments":"{\"n\":2}"}`), done},
			model.Reply{ToolCalls: []event.ToolCall{{ID: "new-1", Name: "f", Arguments: a.Arguments}, {ID: "new-2", Name: "f", Arguments: b.Arguments}}, StopReason: model.StopToolCalls},
		},
		"id and name in every piece, calls interleaved": {
			[]string{
				call(`"index":1,"id":"b","function":{"name":"f","arguments":"{\"n\""}`), call(`"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\""}`),
				call(`"index":1,"id":"b","function":{"name":"f","arguments":":2}"}`), call(`"index":0,"id":"a","function":{"name":"f","arguments":":1}"}`), done,
			},
			model.Reply{ToolCalls: []event.ToolCall{b, a}, StopReason: model.StopToolCalls},
		},
		"name late": {
			[]string{call(`"index":0,"id":"a"`), call(`"index":0,"function":{"name":"f"}`), call(`"index":0,"function":{"arguments":"{\"n\":1}"}`), done},
			model.Reply{ToolCalls: []event.ToolCall{a}, StopReason: model.StopToolCalls},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := start(t, tc.lines...)
			got, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.NoError(t, err)
			if tc.want.Model == "" {
				tc.want.Model = "x"
			}
			require.Equal(t, tc.want, got)
		})
	}
}

func TestIntolerance(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		code  fault.Code
	}{
		"neither finish reason nor [DONE]": {[]string{text("Hi")}, fault.ModelCutOff},
		"nothing":                          {nil, fault.ModelCutOff},
		"nothing but [DONE] cut":           {[]string{"data: [DO"}, fault.ModelCutOff},
		"a call without a name":            {[]string{call(`"index":0,"id":"a","function":{"arguments":"{}"}`), done}, fault.ModelBadReply},
		"a number as text":                 {[]string{`data: 7` + "\n", done}, fault.ModelNoAnswer},
		"too many calls":                   {append(manyCalls(), done), fault.ModelBadReply},
		"an error with a status":           {[]string{`data: {"error":{"message":"m","code":429}}` + "\n"}, fault.ModelRateLimited},
		"an error as a string":             {[]string{`data: {"error":"boom"}` + "\n"}, fault.ModelFailed},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := start(t, tc.lines...)
			_, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.ErrorIs(t, err, fault.New(tc.code))
		})
	}
}

func manyCalls() []string {
	var all []string
	for range 200 {
		all = append(all, call(`"function":{"name":"f","arguments":"{}"}`))
	}
	return all
}

// Local servers need no key, and must not receive one from the environment.
func TestNothingComesFromTheEnvironment(t *testing.T) {
	for _, v := range []string{"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(v, "sk-from-environment")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Odd: yes")
	m, srv := start(t, text("Hi"), done)
	_, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
	require.NoError(t, err)
	h := srv.Exchanges()[0].Header
	for _, name := range []string{"Authorization", "OpenAI-Organization", "OpenAI-Project", "X-Odd"} {
		require.Empty(t, h.Get(name), name)
	}
	require.Contains(t, string(srv.Exchanges()[0].Body), `"include_usage":true`)
}

func TestToolsWithoutASchema(t *testing.T) {
	m, srv := start(t, text("Hi"), done)
	req := modeltest.Ask("hello")
	req.Tools = append(req.Tools, model.ToolSpec{Name: "t", InputSchema: []byte("{")}, model.ToolSpec{Name: "free", InputSchema: []byte("true")})
	r, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	require.Len(t, r.LeftOut, 1)
	require.Equal(t, "t", r.LeftOut[0].Tool)
	offered := srv.Exchanges()[0].Prompt.Tools
	require.Len(t, offered, 3)
	require.JSONEq(t, `{"type":"object","properties":{}}`, string(offered[2].InputSchema))
}
