package torn

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRead(t *testing.T) {
	big := strings.Repeat("x ", 4000)
	for name, c := range map[string]struct{ frame, top, within string }{
		"as the SDK of agents sends it": {
			`{"type":"agent.task.result","content":{"agentId":"a","taskId":"t-1","result":{"text":"` + big + `"}}}`,
			`{"type":"agent.task.result"}`, `{"agentId":"a","taskId":"t-1"}`,
		},
		"names in order": {
			`{"content":{"agentId":"a","result":"` + big + `","taskId":"t-1"},"id":"f","timestamp":"now","type":"agent.task.result"}`,
			`{"id":"f","timestamp":"now","type":"agent.task.result"}`, `{"agentId":"a","taskId":"t-1"}`,
		},
		"data first, the names at the end": {
			`{"content":{"result":["` + big + `",[1,true,null,-2.5e+3,{}],[]],"taskId" : "t-1" } , "type":"agent.task.result" }` + "\n",
			`{"type":"agent.task.result"}`, `{"taskId":"t-1"}`,
		},
		"ids within the data are the data's": {
			`{"type":"r","content":{"data":{"taskId":"wrong","x":"` + big + `","taskId2":"wrong","y":{"taskId":"wrong"}},"taskId":"t-1"}}`,
			`{"type":"r"}`, `{"taskId":"t-1"}`,
		},
		"the end of the data is not the end of the content": {
			`{"type":"r","content":{"data":{"x":"` + big + `","taskId":"wrong"}}}`,
			`{"type":"r"}`, `{}`,
		},
		"quotes and backslashes": {
			`{"type":"r","content":{"taskId":"t\"\\","x":"` + big + `\\\",\"taskId\":\"wrong\"}}","serviceId":"s\\"}}`,
			`{"type":"r"}`, `{"taskId":"t\"\\","serviceId":"s\\"}`,
		},
		"another member is large": {
			`{"padding":"` + big + `","content":{"taskId":"t-1"},"type":"r"}`,
			`{"type":"r"}`, `{"taskId":"t-1"}`,
		},
		"a name twice": {
			`{"type":"r","taskId":"one","content":{"taskId":"t-1","x":"` + big + `","taskId":"t-2"},"taskId":"two"}`,
			`{"type":"r"}`, `{}`,
		},
		"the content twice": {
			`{"type":"r","content":{"taskId":"t-1"},"x":"` + big + `","content":{"agentId":"a"}}`,
			`{"type":"r"}`, `{}`,
		},
		"values of other kinds":    {`{"type":7,"content":{"taskId":["t"],"x":"` + big + `","agentId":null}}`, `{}`, `{}`},
		"a long value":             {`{"type":"r","id":"` + big[:2000] + `","content":{"x":"` + big + `"}}`, `{"type":"r"}`, `{}`},
		"a list":                   {`[{"type":"r","content":{"taskId":"t"}},"` + big + `",{"type":"r"}]`, `{}`, `{}`},
		"text":                     {big, `{}`, `{}`},
		"more than one value":      {`{"type":"a","x":"` + big + `"} {"type":"b"}`, `{}`, `{}`},
		"the beginning makes none": {`}{"type":"a","x":"` + big + `","id":"f"}`, `{"id":"f"}`, `{}`},
		"the end makes none":       {`{"type":"a","x":"` + big + `","id":"f"`, `{"type":"a"}`, `{}`},
		"very deep":                {strings.Repeat(`{"content":`, 3000) + `"` + big + `"` + strings.Repeat(`}`, 3000), `{}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			top, within := Read([]byte(c.frame[:4096]), []byte(c.frame[len(c.frame)-3000:]), "content")
			if name == "more than one value" {
				top = Members{} // whichever it takes, the type is not one that both have
			}
			require.JSONEq(t, c.top, encode(t, top))
			require.JSONEq(t, c.within, encode(t, within))
		})
	}
}

func encode(t require.TestingT, m Members) string {
	b, err := json.Marshal(m)
	require.NoError(t, err)
	return string(b)
}

// TestReadIsTrue: wherever an object is torn, what is read of it is what it has, and what
// its two ends show whole is read.
func TestReadIsTrue(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`"`, `\`, `\"`, `","taskId":"x"}`, `{"a":`, "t-1"}))
	var value *rapid.Generator[any]
	value = rapid.Deferred(func() *rapid.Generator[any] {
		return rapid.OneOf(
			rapid.Map(text, func(s string) any { return s }), rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }),
			rapid.Just[any](nil), rapid.Just[any](true),
			rapid.Map(rapid.SliceOfN(value, 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(text, value, 0, 3), func(m map[string]any) any { return m }),
		)
	})
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.MapOfN(text, value, 0, 5).Draw(t, "content")
		doc := map[string]any{"content": content}
		for name, v := range rapid.MapOfN(text, text, 0, 4).Draw(t, "top") {
			if name != "content" {
				doc[name] = v
			}
		}
		raw, err := json.Marshal(doc)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "indented") {
			raw, err = json.MarshalIndent(doc, "", " ")
			require.NoError(t, err)
		}
		i := rapid.IntRange(0, len(raw)).Draw(t, "head")
		j := rapid.IntRange(i, len(raw)).Draw(t, "tail")
		top, within := Read(raw[:i], raw[j:], "content")
		subset(t, doc, top)
		subset(t, content, within)
	})
}

func subset(t *rapid.T, of map[string]any, found Members) {
	for name, raw := range found {
		var s string
		require.NoError(t, json.Unmarshal(raw, &s))
		require.Equal(t, of[name], s, name)
	}
}

// FuzzRead: no bytes bring it down, it changes none, and of what it reads of a whole object
// each text is one of the object's.
func FuzzRead(f *testing.F) {
	for i, frame := range []string{
		`{"type":"agent.task.result","content":{"agentId":"a","taskId":"t-1","result":"large"}}`,
		`{"content":{"result":[1,{"a":"\\\""}],"taskId":"t"},"type":"r"}`, `[`, `}`, `""`, `{"a":"\ud800"}`, "\xff",
	} {
		f.Add([]byte(frame), 5*i, 2*i)
	}
	f.Fuzz(func(t *testing.T, frame []byte, i, j int) {
		i = min(max(i, 0), len(frame))
		j = min(max(j, i), len(frame))
		kept := string(frame)
		top, within := Read(frame[:i], frame[j:], "content")
		require.Equal(t, kept, string(frame))
		for _, raw := range []Members{top, within} {
			for name, value := range raw {
				var s string
				require.NoError(t, json.Unmarshal(value, &s), name)
				require.LessOrEqual(t, len(value), maxText)
			}
		}
		var doc map[string]json.RawMessage
		if json.Unmarshal(frame, &doc) != nil || strings.Count(kept, `"content"`) > 1 {
			return
		}
		for name := range top {
			require.Contains(t, doc, name)
		}
	})
}
