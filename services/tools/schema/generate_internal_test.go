package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// hole is a pattern that Go cannot compile, where the generated schemas have one.
const hole = "(?=x)"

type object = map[string]any

// schemas draws a schema of some depth whose references lead to /$defs/a and /$defs/b.
func schemas(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		o := object{}
		for range rapid.IntRange(0, 3).Draw(t, "keywords") {
			keyword(t, o, depth)
		}
		return o
	})
}

func keyword(t *rapid.T, o object, depth int) {
	sub := func() any { return schemas(depth-1).Draw(t, "sub") }
	pick := func(of ...any) any { return rapid.SampledFrom(of).Draw(t, "pick") }
	name := func() string { return rapid.SampledFrom(letters).Draw(t, "name") }
	flat := []func(){
		func() { o["type"] = pick("string", "object", "array", "integer", "null", []any{"object", "string"}) },
		func() { o["pattern"] = pick(hole, "^a", "b") },
		func() { o["maxLength"] = 1 },
		func() { o["required"] = []any{name()} },
		func() { o["$ref"] = pick("#/$defs/a", "#/$defs/b") },
		func() { o["enum"] = []any{"a", json.Number("1"), object{}} },
		func() { o["minItems"], o["minProperties"] = 1, 1 },
	}
	deep := []func(){
		func() { o["properties"] = object{name(): sub(), name(): sub()} },
		func() { o["properties"] = object{name(): sub()} },
		func() { o["additionalProperties"] = pick(false, sub()) },
		func() {
			o["patternProperties"] = object{rapid.SampledFrom([]string{hole, "a", "^b"}).Draw(t, "pattern"): sub()}
		},
		func() { o["not"] = sub() },
		func() { o["if"], o["then"], o["else"] = sub(), sub(), sub() },
		func() { o["unevaluatedProperties"] = false },
		func() { o["unevaluatedItems"] = false },
		func() { o["contains"], o["maxContains"] = sub(), 1 },
		func() { o["prefixItems"], o["items"] = []any{sub()}, sub() },
		func() { o["dependentSchemas"], o["propertyNames"] = object{"a": sub()}, sub() },
		func() { o["allOf"] = []any{sub(), sub()} },
		func() { o["anyOf"] = []any{sub(), sub()} },
		func() { o["oneOf"] = []any{sub(), sub()} },
	}
	if depth > 0 {
		flat = append(flat, deep...)
	}
	flat[rapid.IntRange(0, len(flat)-1).Draw(t, "keyword")]()
}

var letters = []string{"a", "b", "c"}

// values draws a JSON value of some depth.
func values(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		n := 3
		if depth > 0 {
			n = 6
		}
		switch rapid.IntRange(0, n).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return json.Number("1")
		case 2, 3:
			return rapid.SampledFrom([]string{"", "a", "b", "abc"}).Draw(t, "text")
		case 4:
			return rapid.SliceOfN(values(depth-1), 0, 3).Draw(t, "items")
		default:
			return rapid.MapOfN(rapid.SampledFrom(letters), values(depth-1), 0, 3).Draw(t, "members")
		}
	})
}

// documents draws a schema that arguments could have.
func documents() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		o, _ := schemas(3).Draw(t, "schema").(object)
		o["$defs"] = object{"a": schemas(1).Draw(t, "a"), "b": schemas(1).Draw(t, "b")}
		b, err := json.Marshal(o)
		require.NoError(t, err)
		return b
	})
}

// compiledAsBefore compiles a document without any tolerance, or returns nil.
func compiledAsBefore(raw []byte) *jsonschema.Schema {
	doc, err := decode(raw, ofSchemas)
	if err != nil {
		return nil
	}
	s, err := strict(doc, newPatterns())
	if err != nil {
		return nil
	}
	return s
}

// TestTheRestIsChecked: a schema that follows its draft is checked as a whole. Of another one the rest is checked, and it
// refuses nothing that the whole would accept, whatever the part means that is not checked.
func TestTheRestIsChecked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := documents().Draw(t, "document")
		got, err := Compile(raw)
		if err != nil {
			require.ErrorIs(t, err, errEndless)
			return
		}
		v := values(3).Draw(t, "value")
		accepts := got.compiled.Validate(v) == nil
		if !strings.Contains(string(raw), hole) {
			require.Empty(t, got.Unchecked())
			require.Equal(t, compiledAsBefore(raw).Validate(v) == nil, accepts)
			return
		}
		for _, meaning := range []string{"", `[^\\s\\S]`, "^abc"} {
			whole := compiledAsBefore([]byte(strings.ReplaceAll(string(raw), hole, meaning)))
			if whole != nil && whole.Validate(v) == nil {
				require.True(t, accepts, "%s refuses %v, unchecked %q", raw, v, got.Unchecked())
			}
		}
	})
}

// counter is a keyword that counts the visits of the compiler's schemas.
type counter struct{ visits *int }

func (c counter) Validate(*jsonschema.ValidatorContext, any) { *c.visits++ }

// TestTheMeterCountsAllWork: no check visits more schemas than the meter has counted before.
func TestTheMeterCountsAllWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := strings.ReplaceAll(string(documents().Draw(t, "document")), hole, "a")
		doc, err := decode([]byte(raw), ofSchemas)
		require.NoError(t, err)
		visits := 0
		c := jsonschema.NewCompiler()
		c.UseRegexpEngine(newPatterns().compile)
		c.AssertVocabs()
		c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "test:counter", Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
			return counter{&visits}, nil
		}})
		require.NoError(t, c.AddResource(schemaURL, doc))
		s, err := c.Compile(schemaURL)
		require.NoError(t, err)
		p, err := planned(s)
		if err != nil {
			require.ErrorIs(t, err, errEndless)
			return
		}
		v := values(4).Draw(t, "value")
		m := &meter{maxWork}
		m.visit(p, v)
		_ = s.Validate(v)
		require.LessOrEqual(t, visits, maxWork-m.left)
	})
}
