package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools"
)

func TestStructuredContentIsToldOnce(t *testing.T) {
	text := func(s ...string) (out []mcp.Content) {
		for _, v := range s {
			out = append(out, &mcp.TextContent{Text: v})
		}
		return out
	}
	answer := map[string]any{"b": 1.0, "a": []any{"x"}}
	for _, tc := range []struct {
		content []mcp.Content
		want    string
	}{
		{nil, `{"a":["x"],"b":1}`},
		{text("done"), "done\n" + `{"a":["x"],"b":1}`},
		{text(`{ "b": 1.0, "a": ["x"] }`), `{ "b": 1.0, "a": ["x"] }`},
		{text("done", `{"b":1,"a":["x"]}`), "done\n" + `{"b":1,"a":["x"]}`},
	} {
		got := render(&mcp.CallToolResult{Content: tc.content, StructuredContent: answer}, 1000)
		require.Equal(t, tools.Result{Text: tc.want, Bytes: len(tc.want)}, got)
	}
	require.Equal(t, tools.Result{}, render(&mcp.CallToolResult{}, 1000))
}

func TestStructuredContentThatRepeats(t *testing.T) {
	text, image := &mcp.TextContent{Text: "a\nb"}, &mcp.ImageContent{Data: []byte("123"), MIMEType: "image/png"}
	for want, res := range map[string]*mcp.CallToolResult{
		"a\nb":                            {Content: []mcp.Content{text}, StructuredContent: map[string]any{"content": "a\nb"}},
		"[An image, image/png, 3 bytes]":  {Content: []mcp.Content{image}, StructuredContent: map[string]any{"content": []any{map[string]any{"type": "image", "data": "MTIz", "mimeType": "image/png"}}}},
		"a\nb\n{\"content\":\"c\"}":       {Content: []mcp.Content{text}, StructuredContent: map[string]any{"content": "c"}},
		"a\nb\n{\"a\":\"a\\nb\",\"c\":1}": {Content: []mcp.Content{text}, StructuredContent: map[string]any{"a": "a\nb", "c": 1}},
		"a\nb\n7":                         {Content: []mcp.Content{text}, StructuredContent: 7},
	} {
		require.Equal(t, want, textOf(res))
	}
}

func TestStructuredContentIsChecked(t *testing.T) {
	cfg := &Config{Name: "s"}
	k, err := new(listing).learn(cfg, &mcp.Tool{
		Name: "t", InputSchema: map[string]any{"type": "object"},
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}`),
	})
	require.NoError(t, err)
	require.NotEmpty(t, k.OutputSchema)
	_, err = answered(&mcp.CallToolResult{StructuredContent: map[string]any{"a": []any{1, "x"}}}, k, false, 1000)
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.BadOutput, f.Code)
	require.Equal(t, "/a/1", f.Field)
	for _, res := range []*mcp.CallToolResult{
		{StructuredContent: map[string]any{"a": []any{1}}},
		{StructuredContent: map[string]any{"a": "x"}, IsError: true},
		{Content: []mcp.Content{&mcp.TextContent{Text: "no structure"}}},
	} {
		_, err := answered(res, k, false, 1000)
		require.NoError(t, err)
	}
	bad, err := new(listing).learn(cfg, &mcp.Tool{Name: "t", InputSchema: map[string]any{"type": "object"}, OutputSchema: json.RawMessage(`{"$ref":"#"}`)})
	require.NoError(t, err)
	require.Nil(t, bad.Result)
	require.Empty(t, bad.OutputSchema)
}

func TestRawContentProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(64, 400).Draw(t, "limit")
		res := &mcp.CallToolResult{}
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			text := strings.Repeat(rapid.StringN(0, 4, -1).Draw(t, "text"), rapid.IntRange(0, 200).Draw(t, "times"))
			if rapid.Bool().Draw(t, "image") {
				res.Content = append(res.Content, &mcp.ImageContent{Data: []byte(text), MIMEType: "image/png"})
			} else {
				res.Content = append(res.Content, &mcp.TextContent{Text: text})
			}
		}
		out, err := renderRaw(res, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(out.Data), limit)
		require.LessOrEqual(t, len(out.Data), out.Bytes)
		require.Equal(t, out.Truncated, out.Bytes > limit)
		var all []map[string]any
		require.NoError(t, json.Unmarshal(out.Data, &all))
		if !out.Truncated {
			require.Len(t, all, len(res.Content))
		}
	})
}

// TestWhatAgentsCallByThemselves: what a server says only reads, unless the operator decides.
func TestWhatAgentsCallByThemselves(t *testing.T) {
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	for name, c := range map[string]struct {
		cfg   Config
		hints *mcp.ToolAnnotations
		want  bool
	}{
		"reads":              {Config{Rules: tools.Rules{AgentsRead: true}}, reads, true},
		"no hint":            {Config{Rules: tools.Rules{AgentsRead: true}}, nil, false},
		"writes":             {Config{Rules: tools.Rules{AgentsRead: true}}, &mcp.ToolAnnotations{}, false},
		"hints do not count": {Config{Rules: tools.Rules{AgentsRead: true}, IgnoreHints: true}, reads, false},
		"people always":      {Config{Rules: tools.Rules{AgentsRead: true, Approval: event.ApprovalAlways}}, reads, false},
		"people about it":    {Config{Rules: tools.Rules{AgentsRead: true, Approvals: map[string]string{"t": event.ApprovalAlways}}}, reads, false},
		"opened":             {Config{Rules: tools.Rules{Agents: true}}, nil, true},
		"closed":             {Config{}, reads, false},
	} {
		k, err := new(listing).learn(&c.cfg, &mcp.Tool{Name: "t", InputSchema: map[string]any{"type": "object"}, Annotations: c.hints})
		require.NoError(t, err)
		require.Equal(t, c.want, k.Agents, name)
		require.Equal(t, c.cfg.Rules.Policy("t", false).Reads, k.Policy.Reads, "models are asked about it as before")
	}
}
