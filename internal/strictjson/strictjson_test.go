package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/internal/strictjson/hostile"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func TestHostileDocuments(t *testing.T) {
	legal, refused := 0, map[fault.Code]int{}
	for _, d := range hostile.Documents() {
		before := bytes.Clone(d.Body)
		err := strictjson.Check(d.Body)
		require.Equal(t, before, d.Body, "%s: the document was modified", d.Name)
		if d.Legal {
			require.NoError(t, err, d.Name)
			sameMeaning(t, d.Name, d.Body)
			legal++
			continue
		}
		f, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok, "%s: want a fault, have %v", d.Name, err)
		require.Equal(t, d.Code, f.Code, "%s: %v", d.Name, err)
		require.LessOrEqual(t, len(f.Message), 120, d.Name)
		refused[f.Code]++
	}
	t.Logf("%d legal, refused: %v", legal, refused)
}

func TestFaultsSayWhatAndWhere(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{`{"a":1,"a":2}`, "a name occurs twice in one object (byte 7)"},
		{`{"a":`, "it ends too early (byte 5)"},
		{` `, "it is empty"},
		{`{"a":tru}`, "syntax error (byte"},
		{`{} {}`, "something follows the first value (byte"},
		{strings.Repeat("[", 33), "it is nested too deeply (byte 33)"},
		{"[" + strings.Repeat("1", 65) + "]", "a number is too long"},
		{"[" + strings.Repeat("1,", 10_000) + "1]", "it has too many values"},
		{"\"\xff\"", "not valid UTF-8 at byte 1"},
	} {
		require.ErrorContains(t, strictjson.Check([]byte(c.doc)), c.want)
	}
}

func TestLimitsAreTheCallersChoice(t *testing.T) {
	l := strictjson.Limits{Depth: 1, Tokens: 3, NumberDigits: 2}
	require.NoError(t, l.Check([]byte(`[12]`)))
	require.Error(t, l.Check([]byte(`[123]`)))
	require.Error(t, l.Check([]byte(`[1,2]`)))
	require.Error(t, l.Check([]byte(`[[]]`)))
}

// A scanner that was left in the middle of a bad document must not remember it.
func TestABadDocumentLeavesNoTrace(t *testing.T) {
	good := []byte(`{"a":{"b":[1,2,{"c":"d"}]}}`)
	for _, d := range hostile.Documents() {
		_ = strictjson.Check(d.Body)
		require.NoError(t, strictjson.Check(good), "after %s", d.Name)
	}
}

func TestDecode(t *testing.T) {
	type inner struct {
		Content string          `json:"content"`
		Raw     json.RawMessage `json:"raw"`
	}
	type frame struct {
		Type string `json:"type"`
		Data inner  `json:"data"`
	}
	var f frame
	require.NoError(t, strictjson.Decode([]byte(`{"type":"x","data":{"content":"c","raw":{"z":[1]}},"new":1}`), &f))
	require.Equal(t, frame{Type: "x", Data: inner{Content: "c", Raw: json.RawMessage(`{"z":[1]}`)}}, f)

	f = frame{}
	require.NoError(t, strictjson.Decode([]byte(`{"Type":"x","data":{"CONTENT":"c"}}`), &f))
	require.Zero(t, f, "names match in their exact case only")

	more, ok := errors.AsType[*fault.Fault](strictjson.DecodeKnown([]byte(`{"type":"x","data":{"content":"c","more":1}}`), &f))
	require.True(t, ok)
	require.Equal(t, fault.InvalidField, more.Code)
	require.Equal(t, "data.more", more.Field)
	require.NoError(t, strictjson.DecodeKnown([]byte(`{"type":"x","data":{"content":"c"}}`), &f))

	err := strictjson.Decode([]byte(`{"type":"x","data":{"content":5}}`), &f)
	bad, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, fault.InvalidField, bad.Code)
	require.Equal(t, "data.content", bad.Field)

	require.ErrorIs(t, strictjson.Decode([]byte(`{"type":"x","type":"y"}`), &f), fault.New(fault.BadJSON))

	var long map[string]int
	err = strictjson.Decode([]byte(`{"`+strings.Repeat("é", 500)+`":"x"}`), &long)
	bad, ok = errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.LessOrEqual(t, len(bad.Field), 100)
}

// sameMeaning fails unless encoding/json reads the document too, and both read the same.
func sameMeaning(t require.TestingT, name string, doc []byte) {
	var std, strict any
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&std), name)
	// Numbers that float64 cannot hold are legal text; the reader decides on their value.
	if err := strictjson.Decode(doc, &strict); err != nil {
		require.ErrorIs(t, err, fault.New(fault.InvalidField), name)
		var plain any
		require.Error(t, json.Unmarshal(doc, &plain), name)
		return
	}
	var plain any
	require.NoError(t, json.Unmarshal(doc, &plain), name)
	require.Equal(t, plain, strict, name)
	again, err := json.Marshal(std)
	require.NoError(t, err, name)
	require.NoError(t, strictjson.Limits{Depth: 32, Tokens: 10_000, NumberDigits: 1 << 10}.Check(again), name)
}

// Documents of all shapes that encoding/json writes are accepted, and mean the same.
func TestWhatTheStandardLibraryWritesIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, err := json.Marshal(value(4).Draw(t, "value"))
		require.NoError(t, err)
		require.NoError(t, strictjson.Check(doc), string(doc))
		sameMeaning(t, string(doc), doc)
	})
}

// A mutated document is either refused, or means the same to both readers.
func TestWhatIsAcceptedMeansTheSameToTheStandardLibrary(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		doc, err := json.Marshal(value(3).Draw(t, "value"))
		require.NoError(t, err)
		for range rapid.IntRange(1, 3).Draw(t, "mutations") {
			doc = mutated(t, doc)
		}
		if strictjson.Check(doc) == nil {
			accepted++
			sameMeaning(t, string(doc), doc)
		}
	})
	require.Positive(t, accepted)
}

// mutated puts a piece anywhere, or wraps the document. A piece seldom leaves a document valid: without wraps a hundred documents may
// have no accepted one among them.
func mutated(t *rapid.T, doc []byte) []byte {
	if rapid.Bool().Draw(t, "wrap") {
		wrap := rapid.SampledFrom([][2]string{{" ", ""}, {"", "\n"}, {"[", "]"}, {"[0,", "]"}, {`{"k":`, "}"}, {`{"\u006b":[`, "]}"}}).Draw(t, "around")
		return slices.Concat([]byte(wrap[0]), doc, []byte(wrap[1]))
	}
	at := rapid.IntRange(0, len(doc)).Draw(t, "at")
	piece := rapid.SampledFrom([]string{
		`"`, `\`, `,`, `:`, `{`, `}`, `[`, `]`, `0`, `-`, `.`, `e`, " ", "\x00", "\xff", `\u`, `\ud800`, `"a":1,`, "null", "é",
	}).Draw(t, "piece")
	cut := rapid.IntRange(at, min(at+2, len(doc))).Draw(t, "cut")
	return slices.Concat(doc[:at], []byte(piece), doc[cut:])
}

func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.Bool().Draw(t, "bool")
		case 1:
			return rapid.String().Draw(t, "string")
		case 2:
			return rapid.Float64Range(-1e300, 1e300).Draw(t, "number")
		case 3:
			return nil
		case 4:
			return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "array")
		default:
			return rapid.MapOfN(rapid.String(), value(depth-1), 0, 4).Draw(t, "object")
		}
	})
}

func FuzzCheck(f *testing.F) {
	for _, d := range hostile.Documents() {
		if len(d.Body) <= 4096 {
			f.Add(d.Body)
		}
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if strictjson.Check(doc) == nil {
			sameMeaning(t, string(doc), doc)
			return
		}
		// Refused twice for the same reason: the scanner remembers nothing.
		require.Equal(t, strictjson.Check(doc), strictjson.Check(doc))
	})
}

func frame() []byte {
	return []byte(`{"type":"user_message","id":"0199c3d2-41f0-7a53-8e0b-5d1c9a7e2f10","data":{"content":"` +
		strings.Repeat("which files are in the workspace? ", 20) + `","n":[1,2.5,true,null]}}`)
}

func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name string
		doc  []byte
	}{
		{"frame", frame()},
		{"wide", []byte("[" + strings.Repeat(`{"name":"value","n":12345},`, 1000) + "0]")},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.doc)))
			b.ReportAllocs()
			for b.Loop() {
				if err := strictjson.Check(c.doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
