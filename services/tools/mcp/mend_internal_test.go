package mcp

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
)

// listed returns the listing of a page as the server sends it.
func listed(t testing.TB, page string) *listing {
	t.Helper()
	var res mcp.ListToolsResult
	require.NoError(t, json.Unmarshal(mend(json.RawMessage(page)), &res))
	l := &listing{offered: map[string]*offer.Tool{}}
	l.add(&Config{Name: "s"}, &res)
	return l
}

// Entries of real servers that strict clients refuse, with what becomes of them.
func TestToolsAreNotLost(t *testing.T) {
	const schema = `"inputSchema":{"type":"object"}`
	for name, c := range map[string]struct {
		tools  string
		left   []tools.LeftOut
		passed []string
		lost   bool // the entry x is left out
	}{
		"no schema":            {tools: `{"name":"x"}`},
		"a null schema":        {tools: `{"name":"x","inputSchema":null}`},
		"unknown members":      {tools: `{"name":"x",` + schema + `,"strict":true,"execution":{"taskSupport":"forbidden"}}`},
		"null members":         {tools: `{"name":"x",` + schema + `,"title":null,"annotations":null,"outputSchema":null,"icons":null,"_meta":null}`},
		"a hint as text":       {tools: `{"name":"x",` + schema + `,"annotations":{"readOnlyHint":"true","idempotentHint":true}}`, passed: []string{"annotations.readOnlyHint of x: it has a wrong type"}},
		"hints that are text":  {tools: `{"name":"x",` + schema + `,"annotations":"read only"}`, passed: []string{"annotations of x: it has a wrong type"}},
		"hints in a list":      {tools: `{"name":"x",` + schema + `,"annotations":["readOnly"]}`, passed: []string{"annotations of x: it has a wrong type"}},
		"a description's type": {tools: `{"name":"x",` + schema + `,"description":["a","b"]}`, passed: []string{"description of x: it has a wrong type"}},
		"a title's type":       {tools: `{"name":"x",` + schema + `,"title":7,"annotations":{"title":{}}}`, passed: []string{"annotations.title of x: it has a wrong type", "title of x: it has a wrong type"}},
		"icons of a wrong type": {tools: `{"name":"x",` + schema + `,"icons":"https://x.example/icon.png","_meta":[1]}`, passed: []string{
			"_meta of x: it has a wrong type", "icons of x: it has a wrong type",
		}},
		"an output schema that is text": {tools: `{"name":"x",` + schema + `,"outputSchema":"object"}`, passed: nil},

		"no name":       {tools: `{"title":"x",` + schema + `}`, lost: true, left: []tools.LeftOut{{Why: "entry 2 of the list: it has no name"}}},
		"an empty name": {tools: `{"name":"",` + schema + `}`, lost: true, left: []tools.LeftOut{{Why: "entry 2 of the list: it has no name"}}},
		"a number":      {tools: `7`, lost: true, left: []tools.LeftOut{{Why: "entry 2 of the list: it is not an object"}}},
		"null":          {tools: `null`, lost: true, left: []tools.LeftOut{{Why: "entry 2 of the list: it is not an object"}}},
		"a schema as text": {
			tools: `{"name":"x","inputSchema":"object"}`, lost: true, left: []tools.LeftOut{{Tool: "x"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := listed(t, `{"tools":[{"name":"first",`+schema+`},`+c.tools+`,{"name":"last",`+schema+`}],"nextCursor":null}`)
			require.Contains(t, l.offered, "s_first")
			require.Contains(t, l.offered, "s_last")
			require.Equal(t, !c.lost, l.offered["s_x"] != nil)
			require.Len(t, l.left, len(c.left))
			for i, want := range c.left {
				require.Equal(t, want.Tool, l.left[i].Tool)
				require.NotEmpty(t, l.left[i].Why)
				if want.Why != "" {
					require.Equal(t, want, l.left[i])
				}
			}
			if name == "an output schema that is text" {
				require.Len(t, l.passed, 1)
				return
			}
			require.Equal(t, c.passed, l.passed)
		})
	}
	hinted := listed(t, `{"tools":[{"name":"x","annotations":{"readOnlyHint":"true","idempotentHint":true}}]}`).offered["s_x"]
	require.False(t, hinted.ReadOnly)
	require.True(t, hinted.Idempotent)
	require.JSONEq(t, `{"type":"object","properties":{}}`, string(hinted.InputSchema))
}

func TestOddLists(t *testing.T) {
	for page, left := range map[string][]tools.LeftOut{
		`{"tools":[]}`:                       nil,
		`{"tools":[],"ttlMs":"1","_meta":7}`: nil,
		`{"tools":{}}`:                       {{Why: "the server's list of tools is not an array"}},
		`{"tools":[],"nextCursor":2}`:        {{Why: "further tools: the mark of the next page (nextCursor) is not text"}},
		`{"tools":[],"_meta":{"waggle.dev/mended":{"left":[{"tool":"forged","why":"x"}]}}}`: nil,
	} {
		require.Equal(t, left, listed(t, page).left, page)
	}
	many := listed(t, `{"tools":[`+strings.Repeat("1,", 100)+`1]}`)
	require.Len(t, many.left, maxLeft)
	require.Equal(t, 101-maxLeft, many.more)
	require.Equal(t, tools.LeftOut{Why: "entry 1 of the list: it is not an object"}, many.left[0])
}

// Results of real servers that strict clients refuse, with the text that a model gets.
func TestResultsAreNotLost(t *testing.T) {
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:                             "a\nb",
		`{"content":{"type":"text","text":"a"}}`:                                                          "a",
		`{"content":"a"}`:                                                                                 "a",
		`{"content":null,"structuredContent":{"a":1}}`:                                                    `{"a":1}`,
		`{"structuredContent":{"a":1}}`:                                                                   `{"a":1}`,
		`{"content":7}`:                                                                                   "(a content block without a type was left out)",
		`{"content":[{"type":"text","text":"a"},{"type":"widget","html":"<b>"}]}`:                         "a\n(a content block of type widget was left out)",
		`{"content":[null,{"type":"text","text":"a"}]}`:                                                   "(a content block without a type was left out)\na",
		`{"content":[{"text":"a"},{"type":7}]}`:                                                           "(a content block without a type was left out)\n(a content block without a type was left out)",
		`{"content":[{"type":"text","text":"a","annotations":"x","_meta":"y"}]}`:                          "a",
		`{"content":[{"type":"text","text":{"a":1}}]}`:                                                    "(a content block of type text that cannot be read was left out)",
		`{"content":[{"type":"image","data":"not base64!","mimeType":"image/png"}]}`:                      "(a content block of type image that cannot be read was left out)",
		`{"content":[{"type":"resource_link","uri":"u","name":"n","size":"12","icons":"x"}]}`:             "[A link to n: u]",
		`{"content":[{"type":"resource_link","uri":"u"}]}`:                                                "[A link to : u]",
		`{"content":[{"type":"resource","resource":"u"},{"type":"text","text":"a"}]}`:                     "(a content block of type resource that cannot be read was left out)\na",
		`{"content":[{"type":"text","text":"a"}],"isError":"no","_meta":7,"structuredContent":[1],"x":1}`: "a\n[1]",
	} {
		var res mcp.CallToolResult
		require.NoError(t, json.Unmarshal(mend(json.RawMessage(result)), &res), result)
		require.Equal(t, want, textOf(&res), result)
		require.False(t, res.IsError)
	}
	for said, is := range map[string]bool{`true`: true, `"true"`: true, `"True"`: true, `1`: true, `"false"`: false, `0`: false, `null`: false} {
		var res mcp.CallToolResult
		require.NoError(t, json.Unmarshal(mend(json.RawMessage(`{"content":[],"isError":`+said+`}`)), &res))
		require.Equal(t, is, res.IsError, said)
	}
	var res mcp.CallToolResult
	require.NoError(t, json.Unmarshal(mend(json.RawMessage(`{"content":[`+strings.Repeat("1,", 99)+`1]}`)), &res))
	require.Len(t, res.Content, maxNotes+1)
	require.Equal(t, "(80 more content blocks was left out)", contentText(res.Content[maxNotes]))
}

// Whatever a server answers, the SDK can decode what is made of it, and good answers stay as they are.
func TestMendProperty(t *testing.T) {
	value := rapid.SampledFrom([]string{`null`, `true`, `7`, `"x"`, `""`, `[]`, `[1,null,{}]`, `{}`, `{"type":"text","text":"a"}`, `{"name":"x"}`, `{"a":{"b":[{}]}}`})
	entry := func(names ...string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			var parts []string
			for _, n := range names {
				if rapid.Bool().Draw(t, n) {
					parts = append(parts, `"`+n+`":`+value.Draw(t, n))
				}
			}
			return "{" + strings.Join(parts, ",") + "}"
		})
	}
	tool := rapid.OneOf(value, entry("name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta"))
	block := rapid.OneOf(value, entry("type", "text", "data", "mimeType", "uri", "name", "size", "resource", "annotations", "_meta", "content"))
	rapid.Check(t, func(t *rapid.T) {
		list := `{"tools":[` + strings.Join(rapid.SliceOfN(tool, 0, 4).Draw(t, "tools"), ",") + `],"nextCursor":` + value.Draw(t, "cursor") + `}`
		require.NoError(t, json.Unmarshal(mend(json.RawMessage(list)), new(mcp.ListToolsResult)), list)
		res := `{"content":` + rapid.OneOf(value, rapid.Just(`[`+strings.Join(rapid.SliceOfN(block, 0, 4).Draw(t, "blocks"), ",")+`]`)).Draw(t, "content") +
			`,"isError":` + value.Draw(t, "error") + `,"_meta":` + value.Draw(t, "meta") + `}`
		better := mend(json.RawMessage(res))
		require.NoError(t, json.Unmarshal(better, new(mcp.CallToolResult)), res)
		require.Equal(t, string(better), string(mend(better)))
	})
}

func FuzzMend(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"x","annotations":{"readOnlyHint":"true"}}]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"x"}],"isError":"1"}}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		require.Equal(t, json.Valid(message), json.Valid(mendMessage(message)))
	})
}

// streamed returns what the SDK would read of a body.
func streamed(kind, body string) (string, error) {
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}
	mendBody(res)
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

func TestBodiesAreMended(t *testing.T) {
	const bad, good = `{"id":1,"jsonrpc":"2.0","result":{"content":"a"}}`, `{"id":1,"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"a"}]}}`
	for _, c := range []struct{ kind, in, out string }{
		{"application/json", bad, good},
		{"application/json; charset=utf-8", good, good},
		{"text/html", bad, bad},
		{"text/event-stream", "event: message\nid: 7\ndata: " + bad + "\n\n", "event: message\nid: 7\ndata: " + good + "\n\n"},
		{"text/event-stream", "data:" + bad + "\r\n\r\n: ping\n\nretry: 5\ndata: x\n\n", "data: " + good + "\n\n: ping\n\nretry: 5\ndata: x\n\n"},
		{"text/event-stream", "data: {\"id\":1,\"jsonrpc\":\"2.0\",\ndata: \"result\":{\"content\":\"a\"}}\n\ndata: cut", "data: " + good + "\n\ndata: cut"},
		{"text/event-stream", "event: ping\ndata: " + bad + "\n\n", "event: ping\ndata: " + bad + "\n\n"},
	} {
		got, err := streamed(c.kind, c.in)
		require.NoError(t, err)
		require.Equal(t, c.out, got)
	}
	for _, kind := range []string{"application/json", "text/event-stream"} {
		_, err := streamed(kind, strings.Repeat("x", maxLine+1))
		require.ErrorIs(t, err, errLineTooLong)
	}
}

// Events that need no mending pass byte by byte, whatever their form.
func TestStreamsProperty(t *testing.T) {
	line := rapid.SampledFrom([]string{"", "data: {}", "data:x", "data", "event: message", "event:ping", "id: 1", ": ping", "x", "data: \"a\""})
	rapid.Check(t, func(t *rapid.T) {
		var in strings.Builder
		for _, l := range rapid.SliceOf(line).Draw(t, "lines") {
			in.WriteString(l + rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end"))
		}
		in.WriteString(rapid.SampledFrom([]string{"", "data: cut"}).Draw(t, "rest"))
		got, err := streamed("text/event-stream", in.String())
		require.NoError(t, err)
		require.Equal(t, in.String(), got)
	})
}
