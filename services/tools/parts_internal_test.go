package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func TestOfferedNames(t *testing.T) {
	require.Equal(t, "workspace_read_file", offeredName("workspace", "read_file"))
	require.Equal(t, "s_a_b_"+sum("a.b"), offeredName("s", "a.b"))
	require.Equal(t, "s__"+sum(""), offeredName("s", ""))
	require.NotEqual(t, offeredName("s", "a.b"), offeredName("s", "a/b"))
	require.NotEqual(t, offeredName("s", strings.Repeat("x", 100)), offeredName("s", strings.Repeat("x", 101)))
}

func sum(s string) string { n := offeredName("s", s); return n[len(n)-hashChars:] }

func TestOfferedNameProperty(t *testing.T) {
	servers := rapid.StringMatching(`[A-Za-z0-9_-]{1,30}`)
	rapid.Check(t, func(t *rapid.T) {
		server := servers.Draw(t, "server")
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		name := offeredName(server, a)
		require.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, name)
		require.True(t, belongsTo(name, server))
		require.Equal(t, name, offeredName(server, a))
		if a != b {
			require.NotEqual(t, name, offeredName(server, b))
		}
		if other := servers.Draw(t, "other"); checkServerNames([]string{server, other}) == nil {
			require.False(t, belongsTo(name, other))
		}
	})
}

func TestSchemasThatAreRefused(t *testing.T) {
	for _, raw := range []string{
		``, `{`, `7`, `{"type":"object"} {}`, `{"type":"wrong"}`, `{"$ref":"http://example.com/x"}`,
		`{"$ref":"https://example.com/x"}`, `{"$ref":"file:///etc/passwd"}`, `{"$ref":"other.json"}`,
		`{"$schema":"http://example.com/meta","type":"object"}`, `{"$ref":"#/missing"}`,
		`{"properties":{"a":{"pattern":"("}}}`, `{"minimum":1e-99999}`, `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		`{"description":"` + strings.Repeat("x", maxSchema) + `"}`,
	} {
		_, err := compileSchema(json.RawMessage(raw))
		require.Error(t, err, shorten(raw, 100))
	}
}

// Not even a document that exists, is a schema and lies on this machine.
func TestReferencesAreNotFetched(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schema.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"type":"string"}`), 0o600))
	var hits atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = w.Write([]byte(`{"type":"string"}`))
	}))
	defer srv.Close()
	for _, ref := range []string{"file://" + file, srv.URL + "/schema.json"} {
		_, err := compileSchema(json.RawMessage(`{"properties":{"a":{"$ref":"` + ref + `"}}}`))
		require.ErrorContains(t, err, "is not fetched")
	}
	require.Zero(t, hits.Load())
}

func TestArgumentsAreChecked(t *testing.T) {
	s, err := compileSchema(json.RawMessage(`{
		"type":"object", "required":["name"], "additionalProperties":false, "properties":{
			"name":{"type":"string","minLength":1,"pattern":"^[a-z]+$"},
			"tree":{"$ref":"#/$defs/node"}, "n":{"type":"number","multipleOf":0.5}},
		"$defs":{"node":{"type":"object","properties":{"a/b~c":{"type":"array","items":{"$ref":"#/$defs/node"}}},"additionalProperties":false}}}`))
	require.NoError(t, err)
	for in, want := range map[string]string{
		`{"name":""}`:                                   "/name: minLength",
		`{"name":"A"}`:                                  "/name: 'A' does not match",
		`{"name":"a","x":1}`:                            "the top level: additional properties 'x'",
		`{"name":"a","n":0.3}`:                          "/n: ",
		`{"name":"a","n":1e400000}`:                     "exponent",
		`{"name":"a","n":1e-401}`:                       "exponent",
		`{"name":"a","tree":{"a/b~c":[{"a/b~c":[1]}]}}`: "/tree/a~1b~0c/0/a~1b~0c/0: got number",
		`{"n":"x"}`:                                     "missing property 'name'; at /n",
	} {
		_, err := checkArguments(s, json.RawMessage(in))
		var f *fault.Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, fault.ToolBadInput, f.Code)
		require.Contains(t, f.Message, want, in)
	}
	got, err := checkArguments(s, json.RawMessage(`{"name":"a","n":1e3,"tree":{"a/b~c":[{}]}}`))
	require.NoError(t, err)
	require.Equal(t, json.Number("1e3"), got["n"])
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), []byte(`{"a":{"a":{}}}`))
	f.Add([]byte(`{"multipleOf":1e-300}`), []byte(`{"a":1e300}`))
	f.Add([]byte(`{"$dynamicRef":"#x","$dynamicAnchor":"x"}`), []byte(`{}`))
	f.Add([]byte(`{"uniqueItems":true,"items":{"enum":[1,{}]}}`), []byte(`[1,1.0]`))
	f.Fuzz(func(t *testing.T, schema, in []byte) {
		s, err := compileSchema(schema)
		if err != nil {
			return
		}
		if _, err := checkArguments(s, in); err != nil {
			var f *fault.Fault
			require.ErrorAs(t, err, &f)
			require.True(t, utf8.ValidString(f.Message))
			require.Less(t, len(f.Message), 8<<10)
		}
	})
}

func TestCallsAreRememberedForAWhile(t *testing.T) {
	c := &clock{t: time.Unix(0, 0)}
	calls := newCalls(2, c.now)
	call := Call{ID: "1", Tenant: id.DefaultTenant, Tool: "x"}
	r, fresh, err := calls.begin(t.Context(), call)
	require.NoError(t, err)
	require.True(t, fresh)
	calls.end(r, Result{Text: "a"}, nil, true)
	c.t = c.t.Add(remember)
	r, fresh, err = calls.begin(t.Context(), call)
	require.NoError(t, err)
	require.False(t, fresh)
	require.Equal(t, "a", r.result.Text)
	c.t = c.t.Add(time.Second)
	_, fresh, err = calls.begin(t.Context(), call)
	require.NoError(t, err)
	require.True(t, fresh, "forgotten")
}

// Whatever happens, the bounds hold and the books balance.
func TestCallsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{t: time.Unix(0, 0)}
		calls := newCalls(3, c.now)
		calls.maxWaiting, calls.maxKept = 1000, 3000
		var running []*run
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				size := rapid.SampledFrom([]int{0, 100, 500, 1000}).Draw(t, "size")
				call := Call{ID: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id")), Tenant: id.DefaultTenant, Arguments: make([]byte, size)}
				r, fresh, err := calls.begin(context.Background(), call)
				if fresh {
					require.NoError(t, err)
					running = append(running, r)
				}
			case 2:
				if len(running) == 0 {
					continue
				}
				size := rapid.SampledFrom([]int{0, 1000, 3000}).Draw(t, "result")
				calls.end(running[0], Result{Text: strings.Repeat("x", size)}, nil, rapid.Bool().Draw(t, "keep"))
				running = running[1:]
			case 3:
				c.t = c.t.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "s")) * time.Second)
			}
			require.Equal(t, len(running), calls.running)
			require.LessOrEqual(t, calls.running, 3)
			require.LessOrEqual(t, calls.waiting, 1000)
			require.LessOrEqual(t, calls.size, 3000)
			require.Len(t, calls.all, len(running)+len(calls.kept))
			require.Equal(t, len(running) == 0, closed(calls.idle))
		}
	})
}

func TestRepliesFitIntoAMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"x", "ä", "\x01", "\u2028", "\"", "𝄞"}).Draw(t, "unit")
		text := strings.Repeat(unit, rapid.IntRange(0, 20_000).Draw(t, "n"))
		limit := rapid.IntRange(envelope+2000, 64<<10).Draw(t, "limit")
		m, err := message("to", reply{Result: &Result{Text: text, Bytes: len(text)}}, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, m.Size(), limit)
		out, err := decodeReply(m)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(text, out.Result.Text))
		require.Equal(t, len(out.Result.Text) < len(text), out.Result.Truncated)
		require.Equal(t, len(text), out.Result.Bytes)
	})
}

func TestPages(t *testing.T) {
	var all []Tool
	for i := range 100 {
		all = append(all, Tool{Name: fmt.Sprintf("t%03d", i), Description: strings.Repeat("x", i*20)})
	}
	var got []Tool
	pages := 0
	for after := ""; ; pages++ {
		some, more := page(all, func(t Tool) string { return t.Name }, after, 3000)
		got = append(got, some...)
		if !more {
			break
		}
		require.NotEmpty(t, some)
		after = some[len(some)-1].Name
	}
	require.Equal(t, all, got)
	require.Greater(t, pages, 10)
}

func TestFaultsSurviveTheWay(t *testing.T) {
	f := fault.Newf(fault.ToolBadInput, "no").At("/a").Wrap(errors.New("secret cause"))
	b, err := json.Marshal(faultReply(f))
	require.NoError(t, err)
	require.NotContains(t, string(b), "secret")
	var r reply
	require.NoError(t, json.Unmarshal(b, &r))
	require.ErrorIs(t, r.Fault.fault(), fault.New(fault.ToolBadInput))
	require.Equal(t, "/a", r.Fault.fault().Field)
}

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
		require.Equal(t, Result{Text: tc.want, Bytes: len(tc.want)}, got)
	}
	require.Equal(t, Result{}, render(&mcp.CallToolResult{}, 1000))
}
