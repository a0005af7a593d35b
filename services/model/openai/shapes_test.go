package openai_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
)

// delta is an event with a delta of the one choice; finish, if it is not empty, its finish reason.
func delta(members, finish string) string {
	reason := "null"
	if finish != "" {
		reason = `"` + finish + `"`
	}
	return `data: {"choices":[{"index":0,"delta":{` + members + `},"finish_reason":` + reason + `}]}` + "\n"
}

// Shapes of whole answers that servers send, each with the kind of server that does.
func TestShapesOfAnswers(t *testing.T) {
	const hello = `"content":"Hello"`
	usage := func(in, out int64) model.Usage { return model.Usage{InputTokens: in, OutputTokens: out, Known: true} }
	for name, tc := range map[string]struct {
		lines []string
		want  model.Reply
	}{
		"comments as data, of gateways that keep a connection alive": {
			[]string{"data: : keepalive\n", delta(hello, ""), "data: : keepalive\n", delta("", "stop"), done}, model.Reply{Text: "Hello"},
		},
		"words as data": {[]string{"data: ping\n", delta(hello, ""), "data: OPENROUTER PROCESSING\n", delta("", "stop"), done}, model.Reply{Text: "Hello"}},
		"events without data": {
			[]string{"data:\n", delta(hello, ""), "event: keepalive\ndata:\n", "event: ping\ndata: \n", delta("", "stop"), done}, model.Reply{Text: "Hello"},
		},
		"content in parts, Mistral": {
			[]string{
				delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"Let me see."}]}]`, ""),
				delta(`"content":[{"type":"text","text":"Hel"}]`, ""), delta(`"content":"lo"`, ""), delta("", "stop"), done,
			}, model.Reply{Text: "Hello", Reasoning: "Let me see."},
		},
		"parts of other types": {
			[]string{delta(`"content":["Hel",{"type":"reference","reference_ids":[1]},{"type":"output_text","text":"lo"},{"type":"thinking","thinking":"hm"}]`, "stop"), done},
			model.Reply{Text: "Hello", Reasoning: "hm"},
		},
		"a character in two halves": {
			[]string{delta(`"content":"Hello \ud83d"`, ""), delta(`"content":"\udc1d!"`, ""), delta("", "stop"), done}, model.Reply{Text: "Hello 🐝!"},
		},
		"a half without the other": {
			[]string{delta(`"content":"a\ud83d"`, ""), delta(`"content":"b\udc1dc"`, ""), delta(`"content":"\ud83d"`, "stop"), done}, model.Reply{Text: "a\uFFFDb\uFFFDc\uFFFD"},
		},
		"bytes of a character in two events": {
			[]string{delta("\"content\":\"gr\xc3\"", ""), delta("\"content\":\"\xbc\xc3\x9f \xf0\x9f\"", ""), delta("\"content\":\"\x90\x9d\"", "stop"), done}, model.Reply{Text: "grüß 🐝"},
		},
		"a character in two halves, in reasoning and arguments": {
			[]string{
				delta(`"reasoning_content":"\ud83d"`, ""), delta(`"reasoning_content":"\udc1d"`, ""),
				delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"t\":\"\ud83d"}}]`, ""), delta(`"tool_calls":[{"index":0,"function":{"arguments":"\udc1d\"}"}}]`, "tool_calls"), done,
			}, model.Reply{Reasoning: "🐝", ToolCalls: []event.ToolCall{{ID: "a", Name: "f", Arguments: []byte(`{"t":"🐝"}`)}}, StopReason: model.StopToolCalls},
		},
		"tokens as fractions": {
			[]string{delta(hello, "stop"), `data: {"choices":[],"usage":{"prompt_tokens":12.0,"completion_tokens":3.0}}` + "\n", done}, model.Reply{Text: "Hello", Usage: usage(12, 3)},
		},
		"tokens that are none": {
			[]string{
				delta(hello, "stop"), `data: {"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":3}}` + "\n", `data: {"choices":[],"usage":{"prompt_tokens":"many","completion_tokens":[]}}` + "\n",
				`data: {"choices":[],"usage":{"prompt_tokens":1e99,"completion_tokens":0.5}}` + "\n", `data: {"choices":[],"usage":[]}` + "\n", done,
			}, model.Reply{Text: "Hello"},
		},
		"tokens in the choice, cached ones beside them, Moonshot": {
			[]string{`data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":2,"cached_tokens":4}}]}` + "\n", done},
			model.Reply{Text: "Hello", Usage: model.Usage{InputTokens: 9, OutputTokens: 2, Known: true, TokenDetails: event.TokenDetails{CachedTokens: 4}}},
		},
		"cached tokens, DeepSeek": {
			[]string{delta(hello, "stop"), `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":1}}` + "\n", done},
			model.Reply{Text: "Hello", Usage: model.Usage{InputTokens: 9, OutputTokens: 2, Known: true, TokenDetails: event.TokenDetails{CachedTokens: 8}}},
		},
		"reasoning that only the total counts, xAI and Gemini": {
			[]string{delta(hello, "stop"), `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":112,"completion_tokens_details":{"reasoning_tokens":100},"prompt_tokens_details":{"cached_tokens":6}}}` + "\n", done},
			model.Reply{Text: "Hello", Usage: model.Usage{InputTokens: 10, OutputTokens: 102, Known: true, TokenDetails: event.TokenDetails{CachedTokens: 6, ReasoningTokens: 100}}},
		},
		"tokens in x_groq": {
			[]string{`data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":9,"completion_tokens":2}}}` + "\n", done},
			model.Reply{Text: "Hello", Usage: usage(9, 2)},
		},
		"a message in place of a delta": {
			[]string{`data: {"choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}` + "\n", done}, model.Reply{Text: "Hello"},
		},
		"a whole message with calls without indexes": {
			[]string{`data: {"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}},{"id":"b","function":{"name":"f","arguments":{"n":2}}}]},"finish_reason":"tool_calls"}]}` + "\n"},
			model.Reply{ToolCalls: []event.ToolCall{{ID: "a", Name: "f", Arguments: []byte(`{"n":1}`)}, {ID: "b", Name: "f", Arguments: []byte(`{"n":2}`)}}, StopReason: model.StopToolCalls},
		},
		"thoughts between tags, of local servers": {
			[]string{delta(`"content":"\n<thi"`, ""), delta(`"content":"nk>Let me "`, ""), delta(`"content":"see.</th"`, ""), delta(`"content":"ink>\n\nHello"`, "stop"), done}, model.Reply{Text: "Hello", Reasoning: "Let me see."},
		},
		"a tag within the text": {[]string{delta(`"content":"Use <think> so."`, "stop"), done}, model.Reply{Text: "Use <think> so."}},
		"reasoning under two names": {
			[]string{delta(`"reasoning":"hm","reasoning_content":"hm"`, ""), delta(`"reasoning":"!","reasoning_content":"!"`, ""), delta(hello, "stop"), done}, model.Reply{Text: "Hello", Reasoning: "hm!"},
		},
		"a function's call before there were tools": {
			[]string{delta(`"function_call":{"name":"f","arguments":"{\"n\""}`, ""), delta(`"function_call":{"arguments":":1}"}`, "function_call"), done},
			model.Reply{ToolCalls: []event.ToolCall{{ID: "new-1", Name: "f", Arguments: []byte(`{"n":1}`)}}, StopReason: model.StopToolCalls},
		},
		"ids and models that are numbers": {
			[]string{`data: {"id":7,"model":5,"choices":[{"index":0.0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}` + "\n", done}, model.Reply{Text: "Hello", Model: "5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := start(t, tc.lines...)
			got, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.NoError(t, err)
			if tc.want.Model == "" {
				tc.want.Model = "x"
			}
			if tc.want.StopReason == "" {
				tc.want.StopReason = model.StopEnd
			}
			got.PassBack = nil
			require.Equal(t, tc.want, got)
		})
	}
}

// Calls of tools as servers take them apart. Each has to be made once, with its arguments, or not at all.
func TestShapesOfCalls(t *testing.T) {
	read := func(id, arguments string) event.ToolCall {
		return event.ToolCall{ID: id, Name: "f", Arguments: json.RawMessage(arguments)}
	}
	piece := func(members string) string { return delta(`"tool_calls":[{`+members+`}]`, "") }
	end := delta("", "tool_calls")
	for name, tc := range map[string]struct {
		lines []string
		want  []event.ToolCall
	}{
		"one call at two indexes": {
			[]string{piece(`"index":0,"id":"X","function":{"name":"f","arguments":"{\"n\":1}"}`), piece(`"index":1,"id":"X","function":{"name":"f","arguments":"{\"n\":1}"}`), end},
			[]event.ToolCall{read("X", `{"n":1}`)},
		},
		"one call at two indexes, its arguments with the second": {
			[]string{piece(`"index":0,"id":"X","function":{"name":"f","arguments":""}`), piece(`"index":1,"id":"X","function":{"name":"f","arguments":"{\"n\":1}"}`), end},
			[]event.ToolCall{read("X", `{"n":1}`)},
		},
		"one call at two indexes, its arguments in later pieces": {
			[]string{
				piece(`"index":0,"id":"X","function":{"name":"f"}`), piece(`"index":1,"id":"X","function":{"name":"f","arguments":""}`),
				piece(`"index":1,"function":{"arguments":"{\"n\""}`), piece(`"index":1,"function":{"arguments":":1}"}`), end,
			}, []event.ToolCall{read("X", `{"n":1}`)},
		},
		"two starts at one index": {
			[]string{piece(`"index":0,"id":"c2","function":{"name":"f","arguments":""}`), piece(`"index":0,"id":"c3","function":{"name":"f","arguments":""}`), piece(`"index":0,"function":{"arguments":"{\"n\":1}"}`), end},
			[]event.ToolCall{read("c3", `{"n":1}`)},
		},
		"no ids, one index, arguments after the name": {
			[]string{
				piece(`"index":0,"function":{"name":"f","arguments":""}`), piece(`"index":0,"function":{"arguments":"{\"n\":1}"}`),
				piece(`"index":0,"function":{"name":"f","arguments":""}`), piece(`"index":0,"function":{"arguments":"{\"n\":2}"}`), end,
			}, []event.ToolCall{read("new-1", `{"n":1}`), read("new-2", `{"n":2}`)},
		},
		"no ids, the name once more with the end": {
			[]string{piece(`"index":0,"function":{"name":"f","arguments":"{\"n\":1}"}`), piece(`"index":0,"function":{"name":"f","arguments":""}`), end}, []event.ToolCall{read("new-1", `{"n":1}`)},
		},
		"the arguments once more": {
			[]string{
				piece(`"index":0,"id":"a","function":{"name":"f","arguments":""}`), piece(`"index":0,"function":{"arguments":"{\"n\""}`), piece(`"index":0,"function":{"arguments":":1}"}`),
				delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}}]`, "tool_calls"),
			}, []event.ToolCall{read("a", `{"n":1}`)},
		},
		"each piece has all arguments so far": {
			[]string{piece(`"index":0,"id":"a","function":{"name":"f","arguments":"{"}`), piece(`"index":0,"function":{"arguments":"{\"n\""}`), piece(`"index":0,"function":{"arguments":"{\"n\":1}"}`), end},
			[]event.ToolCall{read("a", `{"n":1}`)},
		},
		"one id for different calls": {
			[]string{piece(`"index":0,"id":"f","function":{"name":"f","arguments":"{\"n\":1}"}`), piece(`"index":1,"id":"f","function":{"name":"f","arguments":"{\"n\":2}"}`), end},
			[]event.ToolCall{read("f", `{"n":1}`), read("new-1", `{"n":2}`)},
		},
		"equal calls with two ids": {
			[]string{piece(`"index":0,"id":"a","function":{"name":"f","arguments":"{}"}`), piece(`"index":1,"id":"b","function":{"name":"f","arguments":"{}"}`), end},
			[]event.ToolCall{read("a", `{}`), read("b", `{}`)},
		},
		"no arguments": {[]string{piece(`"index":0,"id":"a","function":{"name":"f"}`), end}, []event.ToolCall{read("a", `{}`)}},
		"arguments as an object": {
			[]string{piece(`"index":0,"id":"a","function":{"name":"f","arguments":{"n":1}}`), end}, []event.ToolCall{read("a", `{"n":1}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := start(t, append(tc.lines, done)...)
			got, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.NoError(t, err)
			require.Equal(t, tc.want, got.ToolCalls)
			require.Equal(t, model.StopToolCalls, got.StopReason)
		})
	}
}

// A call that the limit of tokens has cut is not made, and the model learns why. A whole one beside it is.
func TestCallsThatAreCut(t *testing.T) {
	const whole = `"tool_calls":[{"index":0,"id":"w","function":{"name":"f","arguments":"{\"n\":1}"}}]`
	for name, cut := range map[string]string{
		"within a text": `"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"{\"text\":\"half of"}}]`,
		"before them":   `"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":""}}]`,
		"no object":     `"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"7"}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := start(t, delta(whole, ""), delta(cut, ""), delta("", "length"), done)
			got, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.NoError(t, err)
			require.Equal(t, model.StopLength, got.StopReason)
			require.Len(t, got.ToolCalls, 2)
			require.Empty(t, got.ToolCalls[0].Invalid)
			require.Contains(t, got.ToolCalls[1].Invalid, "limit of tokens")
		})
	}
}

// The words of providers for the end of an answer.
func TestEnds(t *testing.T) {
	for words, want := range map[string]model.Reply{
		"stop eos end_turn STOP completed":                                     {StopReason: model.StopEnd},
		"length max_tokens MAX_TOKENS LENGTH model_length max_output_tokens":   {StopReason: model.StopLength},
		"content_filter sensitive safety SAFETY recitation PROHIBITED_CONTENT": {StopReason: model.StopFiltered},
		"refusal":   {StopReason: model.StopRefused},
		"moonstone": {StopReason: model.StopOther, StopDetail: "moonstone"},
	} {
		for _, word := range strings.Fields(words) {
			m, _ := start(t, text("The answer is forty"), delta("", word), done)
			got, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.NoError(t, err, word)
			want.Text, want.Model = "The answer is forty", "x"
			require.Equal(t, want, got, word)
		}
	}
}

// Errors that servers put into a stream, with or without a part of an answer before. None is an answer.
func TestErrorsInStreams(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		code  fault.Code
		retry bool
		says  string // a part of what operators read
	}{
		"vLLM": {
			[]string{`data: {"object":"error","message":"max_tokens is too large: 9000","type":"BadRequestError","param":null,"code":400}` + "\n", done},
			fault.ModelRefused, false, "max_tokens is too large",
		},
		"a list, Gemini": {
			[]string{`data: [{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}]` + "\n"}, fault.ModelRateLimited, true, "Quota exceeded",
		},
		"an event with the name error":      {[]string{text("Hel"), "event: error\ndata: {\"message\":\"upstream broke\",\"code\":502}\n"}, fault.ModelFailed, true, "upstream broke"},
		"an event error that is no object":  {[]string{text("Hel"), "event: error\ndata: upstream broke\n"}, fault.ModelFailed, true, "upstream broke"},
		"a line error, llama.cpp":           {[]string{`error: {"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}` + "\n"}, fault.ModelInputTooLong, false, "context size"},
		"a line error at the very end":      {[]string{text("Hel"), `error: {"code":503,"message":"Loading model"}`}, fault.ModelFailed, true, "Loading model"},
		"in a choice, OpenRouter":           {[]string{text("The"), `data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"Provider disconnected"}}]}` + "\n", done}, fault.ModelFailed, true, "Provider disconnected"},
		"in a choice, with too many":        {[]string{`data: {"choices":[{"index":0,"delta":{},"error":{"code":429,"message":"slow down","metadata":{"raw":"from the provider"}}}]}` + "\n"}, fault.ModelRateLimited, true, "from the provider"},
		"a detail, FastAPI":                 {[]string{`data: {"detail":[{"loc":["body","x"],"msg":"Field required"}]}` + "\n", done}, fault.ModelFailed, true, "body.x: Field required"},
		"a code and a message, DashScope":   {[]string{`data: {"code":"Throttling.RateQuota","message":"Requests rate limit exceeded","request_id":"r"}` + "\n"}, fault.ModelRateLimited, true, "rate limit exceeded"},
		"a code as text":                    {[]string{`data: {"error":{"code":"400","message":"bad"}}` + "\n"}, fault.ModelRefused, false, "bad"},
		"a list of errors, Cloudflare":      {[]string{`data: {"success":false,"errors":[{"code":3040,"message":"Capacity temporarily exceeded"}]}` + "\n"}, fault.ModelFailed, true, "Capacity"},
		"the end is a failure":              {[]string{text("forty"), delta("", "error"), done}, fault.ModelFailed, true, `"error"`},
		"the network failed":                {[]string{text("forty"), delta("", "network_error"), done}, fault.ModelFailed, true, "network_error"},
		"no capacity, DeepSeek":             {[]string{text("forty"), delta("", "insufficient_system_resource"), done}, fault.ModelFailed, true, "insufficient_system_resource"},
		"aborted, vLLM and SGLang":          {[]string{text("forty"), delta("", "abort"), done}, fault.ModelFailed, true, "abort"},
		"a call that could not be read":     {[]string{delta("", "malformed_function_call"), done}, fault.ModelBadReply, true, "malformed_function_call"},
		"a call that could not be read, up": {[]string{text("so"), delta("", "MALFORMED_FUNCTION_CALL"), done}, fault.ModelBadReply, true, "MALFORMED_FUNCTION_CALL"},
		"cut within a call":                 {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]`, ""), done}, fault.ModelCutOff, true, "within a tool call"},
		"cut within its arguments":          {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\""}}]`, ""), done}, fault.ModelCutOff, true, "within a tool call"},
		"withheld before the first word":    {[]string{delta("", "content_filter"), done}, fault.ModelContentRefused, false, "filtered"},
		"all tokens spent on reasoning":     {[]string{delta(`"reasoning_content":"Long thoughts"`, "length"), done}, fault.ModelNoAnswer, false, "length"},
		"reasoning alone":                   {[]string{delta(`"reasoning_content":"Long thoughts"`, "stop"), done}, fault.ModelNoAnswer, true, "13 bytes of reasoning"},
		"calls announced, none made":        {[]string{delta(`"content":""`, ""), delta("", "tool_calls"), done}, fault.ModelNoAnswer, true, "neither text nor calls"},
	} {
		t.Run(name, func(t *testing.T) {
			m, srv := start(t, tc.lines...)
			_, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			f, ok := errors.AsType[*model.Failure](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, tc.code, f.Fault.Code, "%v", err)
			require.Equal(t, tc.retry, f.Retry, "%v", err)
			require.Contains(t, f.Said.Message, tc.says)
			if tc.code != fault.ModelRefused {
				require.Len(t, srv.Exchanges(), 1)
			}
		})
	}
}

// A refusal within an answer that has begun does not make the model ask again within the same answer.
func TestALateRefusal(t *testing.T) {
	m, srv := start(t, text("Hel"), `data: {"error":{"code":400,"message":"stream_options?"}}`+"\n")
	_, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
	require.ErrorIs(t, err, fault.New(fault.ModelRefused))
	require.Len(t, srv.Exchanges(), 1)
}

// Whatever a server sends, the model returns an answer or a failure.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		text("Hi") + done, delta(`"content":[{"type":"text","text":"x"}]`, "stop"), delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`, "tool_calls"),
		"error: {\"code\":400}\n", "data: [{\"error\":1}]\n\n", "event: error\ndata: x\n\n", delta(`"content":"\ud83d"`, "stop"), delta(`"reasoning_details":[{"index":0,"text":"a"},{"index":0,"text":7}]`, "stop"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		m, _ := start(t, body)
		_, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
		if err != nil {
			_, ok := errors.AsType[*model.Failure](err)
			require.True(t, ok, "%v", err)
		}
	})
}
