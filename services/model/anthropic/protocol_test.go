package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// start returns a model whose server answers every request with these events, each given by its data alone.
func start(t *testing.T, events ...string) (model.Model, *scripted.Server) {
	t.Helper()
	body := ""
	for _, e := range events {
		body += "data: " + e + "\n\n"
	}
	return modeltest.Serve(t, open, model.Env{}.With("anthropic", model.Access{Key: "test-key"}), modeltest.Stream(body))
}

const (
	begin = `{"type":"message_start","message":{"model":"x-2026","usage":{"input_tokens":5,"cache_read_input_tokens":2,"cache_creation_input_tokens":3,"output_tokens":1}}}`
	block = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	hi    = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`
	stop  = `{"type":"message_stop"}`
)

func end(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":9}}`
}

func TestReplies(t *testing.T) {
	usage := model.Usage{InputTokens: 10, OutputTokens: 9, Known: true, TokenDetails: event.TokenDetails{CachedTokens: 2, CacheWriteTokens: 3}}
	call := func(arguments string) []event.ToolCall {
		return []event.ToolCall{{ID: "a", Name: "f", Arguments: json.RawMessage(arguments)}}
	}
	for name, tc := range map[string]struct {
		events []string
		want   model.Reply
	}{
		"cached input counts":    {[]string{begin, block, hi, end("end_turn"), stop}, model.Reply{Text: "Hi", StopReason: model.StopEnd, Usage: usage, Model: "x-2026"}},
		"without message_stop":   {[]string{begin, block, hi, end("end_turn")}, model.Reply{Text: "Hi", StopReason: model.StopEnd, Usage: usage, Model: "x-2026"}},
		"without a start":        {[]string{block, hi, stop}, model.Reply{Text: "Hi", StopReason: model.StopEnd, Model: "x"}},
		"refusal":                {[]string{begin, block, hi, end("refusal"), stop}, model.Reply{Text: "Hi", StopReason: model.StopRefused, Usage: usage, Model: "x-2026"}},
		"window is full":         {[]string{begin, block, hi, end("model_context_window_exceeded"), stop}, model.Reply{Text: "Hi", StopReason: model.StopLength, Usage: usage, Model: "x-2026"}},
		"what is not known here": {[]string{`{"type":"ping"}`, `{"type":"new_thing","x":[1]}`, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`, hi, stop}, model.Reply{Text: "Hi", Reasoning: "hm", StopReason: model.StopEnd, Model: "x"}},
		"arguments with the start": {
			[]string{`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"n":12345678901234567890}}}`, end("tool_use"), stop},
			model.Reply{ToolCalls: call(`{"n":12345678901234567890}`), StopReason: model.StopToolCalls, Model: "x"},
		},
		"interleaved blocks": {
			[]string{
				block, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"n\""}}`,
				hi, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}}`, stop,
			},
			model.Reply{Text: "Hi", ToolCalls: call(`{"n":1}`), StopReason: model.StopToolCalls, Model: "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := start(t, tc.events...)
			got, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestNoReplies(t *testing.T) {
	for name, tc := range map[string]struct {
		events []string
		code   fault.Code
	}{
		"cut":                   {[]string{begin, block, hi}, fault.ModelCutOff},
		"a call without a name": {[]string{`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","input":{}}}`, stop}, fault.ModelBadReply},
		"no object":             {[]string{`7`}, fault.ModelCutOff},
		"error":                 {[]string{begin, `{"type":"error","error":{"type":"overloaded_error","message":"later"}}`}, fault.ModelBusy},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := start(t, tc.events...)
			_, err := modeltest.Generate(t.Context(), t, m, modeltest.Ask("hello"))
			require.ErrorIs(t, err, fault.New(tc.code))
		})
	}
}

// The model sends results of parallel calls in one message, no empty texts, schemas exactly as the tools declare them, and
// nothing from the environment.
func TestRequest(t *testing.T) {
	for _, v := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"} {
		t.Setenv(v, "from-environment")
	}
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Odd: yes")
	m, srv := start(t, begin, block, hi, end("end_turn"), stop)
	req := modeltest.Ask("two things")
	req.Tools = []model.ToolSpec{{Name: "f", Description: "F.", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":12345678901234567890}}}`)}}
	req.Messages = append(req.Messages,
		model.Message{Role: model.RoleAssistant, ToolCalls: []event.ToolCall{
			{ID: "a", Name: "f", Arguments: json.RawMessage(`{"n":1}`)}, {ID: "b", Name: "f", Arguments: json.RawMessage(`"{\"n\":"`)},
		}},
		model.Message{Role: model.RoleTool, ToolCallID: "a", Content: "one"},
		model.Message{Role: model.RoleTool, ToolCallID: "b", IsError: true},
		model.Message{Role: model.RoleAssistant},
		model.Message{Role: model.RoleUser, Content: ""},
		model.Message{Role: model.RoleSystem, Content: "Be brief."})
	_, err := modeltest.Generate(t.Context(), t, m, req)
	require.NoError(t, err)
	x := srv.Exchanges()[0]
	require.Equal(t, "test-key", x.Header.Get("X-Api-Key"))
	require.Empty(t, x.Header.Get("Authorization")+x.Header.Get("X-Odd"))
	require.Contains(t, string(x.Body), "12345678901234567890")
	require.JSONEq(t, strings.ReplaceAll(`{
		"model": "x", "max_tokens": 4096, "stream": true,
		"system": [{"type": "text", "text": "You are a test."}, {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
		"tools": [{"name": "f", "description": "F.", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}],
		"messages": [
			{"role": "user", "content": [{"type": "text", "text": "two things", "cache_control": {"type": "ephemeral"}}]},
			{"role": "assistant", "content": [
				{"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}},
				{"type": "tool_use", "id": "b", "name": "f", "input": {"invalid_arguments": "{\"n\":"}}]},
			{"role": "user", "content": [
				{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "one"}]},
				{"type": "tool_result", "tool_use_id": "b", "is_error": true, "content": [{"type": "text", "text": "(no output)"}]},
				{"type": "text", "text": "(empty message)", "cache_control": {"type": "ephemeral"}}]}
		]}`, "SCHEMA", string(req.Tools[0].InputSchema)), string(x.Body))
}
