package toolform_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/toolform"
)

const (
	empty  = `{"properties":{},"type":"object"}`
	either = `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"type":"object"}`
)

// forms are schemas of tools, as servers send them, and what becomes of them. A missing form is that of Plain.
var forms = map[string]struct {
	schema                           string
	plain, openai, anthropic, gemini string
	out                              string // the reason why no provider is offered the tool
}{
	"as it should be":        {schema: `{"type":"object","properties":{"q":{"type":"string"}}}`, plain: `{"type":"object","properties":{"q":{"type":"string"}}}`},
	"no schema":              {schema: ``, plain: empty},
	"null":                   {schema: `null`, plain: empty},
	"true":                   {schema: `true`, plain: empty},
	"anything":               {schema: `{}`, plain: empty},
	"no type":                {schema: `{"properties":{"a":{"type":"string"}}}`, plain: `{"properties":{"a":{"type":"string"}},"type":"object"}`},
	"no properties":          {schema: `{"type":"object"}`, plain: empty},
	"empty list of PHP":      {schema: `{"type":"object","properties":[],"required":[]}`, plain: empty},
	"type in a list":         {schema: `{"type":["object","null"]}`, plain: empty},
	"type of other language": {schema: `{"type":"dict","properties":{"n":{"type":"int"},"s":{"type":"String"},"x":{"type":"Foo"}}}`, plain: `{"properties":{"n":{"type":"integer"},"s":{"type":"string"},"x":{}},"type":"object"}`, gemini: `{"properties":{"n":{"type":"integer"},"s":{"type":"string"},"x":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"}]}},"type":"object"}`},
	"draft alone":            {schema: `{"$schema":"http://json-schema.org/draft-07/schema#"}`, plain: empty},
	"text":                   {schema: `{"type":"string"}`, out: "the tool t: its arguments are of type string, not an object"},
	"false":                  {schema: `false`, out: "accepts no object"},
	"number":                 {schema: `7`, out: "not a schema but number"},
	"no JSON":                {schema: `{`, out: "not valid JSON"},
	"any of objects": {
		schema: `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}]}`, plain: either,
	},
	"one of what is required": {
		schema: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, plain: either,
	},
	"required in all": {
		schema: `{"type":"object","oneOf":[{"properties":{"k":{"const":"x"},"a":{"type":"string"}},"required":["k","a"]},{"properties":{"k":{"const":"y"}},"required":["k"]}],"required":["z"],"properties":{"z":{"type":"string"}}}`,
		plain:  `{"properties":{"a":{"type":"string"},"k":{"enum":["x","y"]},"z":{"type":"string"}},"required":["z","k"],"type":"object"}`,
		gemini: `{"properties":{"a":{"type":"string"},"k":{"enum":["x","y"],"type":"string"},"z":{"type":"string"}},"required":["z","k"],"type":"object"}`,
	},
	"one name, two meanings": {
		schema: `{"oneOf":[{"properties":{"v":{"type":"string"}}},{"properties":{"v":{"type":"array","items":{"type":"integer"}}}},{"type":"null"}]}`,
		plain:  `{"properties":{"v":{"anyOf":[{"type":"string"},{"items":{"type":"integer"},"type":"array"}]}},"type":"object"}`,
	},
	"alternatives of other types": {schema: `{"anyOf":[{"type":"string"},{"type":"array"}]}`, out: "accepts no object"},
	"all of": {
		schema: `{"allOf":[{"$ref":"#/definitions/Base"},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}],"definitions":{"Base":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}`,
		plain:  `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"type":"object"}`,
	},
	"not, enum, conditions": {
		schema: `{"type":"object","properties":{"a":{"type":"string"}},"not":{"required":["x"]},"enum":[{"a":"1"}],"if":{"properties":{"a":{"const":"1"}}},"then":{"properties":{"b":{"type":"string"}},"required":["b"]}}`,
		plain:  either,
	},
	"dependent schemas": {
		schema: `{"type":"object","properties":{"a":{"type":"string"}},"dependencies":{"a":{"properties":{"b":{"type":"string"}}}}}`, plain: either,
	},
	"a reference at the top": {
		schema: `{"$ref":"#/$defs/Issue","$defs":{"Issue":{"type":"object","properties":{"id":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/Issue"}}},"required":["id"]}}}`,
		plain:  `{"$defs":{"Issue":{"properties":{"children":{"items":{"$ref":"#/$defs/Issue"},"type":"array"},"id":{"type":"string"}},"required":["id"],"type":"object"}},"properties":{"children":{"items":{"$ref":"#/$defs/Issue"},"type":"array"},"id":{"type":"string"}},"required":["id"],"type":"object"}`,
		gemini: `{"properties":{"children":{"items":{"properties":{"children":{"items":{"type":"object"},"type":"array"},"id":{"type":"string"}},"required":["id"],"type":"object"},"type":"array"},"id":{"type":"string"}},"required":["id"],"type":"object"}`,
	},
	"references to odd places": {
		schema: `{"type":"object","properties":{"s":{"type":"string","enum":["a"]},"l":{"type":"array","items":{"$ref":"#/properties/s"}},"p":{"$ref":"#/components/schemas/Pet"},"q":{"$ref":"https://example.com/x.json","description":"Q"},"r":{"$ref":"#/nowhere"}},"components":{"schemas":{"Pet":{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":0}}}}}}`,
		plain:  `{"$defs":{"Pet":{"properties":{"n":{"exclusiveMinimum":0,"type":"integer"}},"type":"object"},"s":{"enum":["a"],"type":"string"}},"properties":{"l":{"items":{"$ref":"#/$defs/s"},"type":"array"},"p":{"$ref":"#/$defs/Pet"},"q":{"description":"Q"},"r":{},"s":{"enum":["a"],"type":"string"}},"type":"object"}`,
		gemini: `{"properties":{"l":{"items":{"enum":["a"],"type":"string"},"type":"array"},"p":{"properties":{"n":{"minimum":1,"type":"integer"}},"type":"object"},"q":{"anyOf":[{"description":"Q","type":"string"},{"description":"Q","type":"number"},{"description":"Q","type":"boolean"}]},"r":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"}]},"s":{"enum":["a"],"type":"string"}},"type":"object"}`,
	},
	"keywords that are wrong": {
		schema: `{"type":"object","properties":{"a":{"type":"string","required":true,"minLength":"1","pattern":"^(?!x)"},"b":{"type":"integer","minimum":0,"exclusiveMinimum":true},"c":{"anyOf":[]},"type":"object","d":{"type":"string","pattern":"^[a-z[\\]]*$"},"e":{"type":"string","pattern":"^[a-z]+$"}},"required":"a"}`,
		plain:  `{"properties":{"a":{"type":"string"},"b":{"exclusiveMinimum":0,"type":"integer"},"c":{},"d":{"type":"string"},"e":{"pattern":"^[a-z]+$","type":"string"}},"type":"object"}`,
		gemini: `{"properties":{"a":{"type":"string"},"b":{"minimum":1,"type":"integer"},"c":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"}]},"d":{"type":"string"},"e":{"pattern":"^[a-z]+$","type":"string"}},"type":"object"}`,
	},
	"arrays without items": {
		schema: `{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["array","null"]}}}`,
		plain:  `{"properties":{"a":{"type":"array"},"b":{"type":["array","null"]}},"type":"object"}`,
		openai: `{"properties":{"a":{"items":{},"type":"array"},"b":{"items":{},"type":["array","null"]}},"type":"object"}`,
		gemini: `{"properties":{"a":{"items":{"type":"string"},"type":"array"},"b":{"items":{"type":"string"},"nullable":true,"type":"array"}},"type":"object"}`,
	},
	"tuples": {
		schema: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"p":{"type":"array","items":[{"type":"number"},{"type":"string"}],"additionalItems":false,"minItems":2}}}`,
		plain:  `{"properties":{"p":{"items":false,"minItems":2,"prefixItems":[{"type":"number"},{"type":"string"}],"type":"array"}},"type":"object"}`,
		gemini: `{"properties":{"p":{"items":{"anyOf":[{"type":"number"},{"type":"string"}]},"minItems":2,"type":"array"}},"type":"object"}`,
	},
	"optional of pydantic": {
		schema: `{"type":"object","title":"args","properties":{"q":{"anyOf":[{"type":"string","format":"uuid"},{"type":"null"}],"default":null,"title":"Q","description":"What"}}}`,
		plain:  `{"properties":{"q":{"anyOf":[{"format":"uuid","type":"string"},{"type":"null"}],"default":null,"description":"What","title":"Q"}},"title":"args","type":"object"}`,
		gemini: `{"properties":{"q":{"description":"What","nullable":true,"type":"string"}},"type":"object"}`,
	},
	"nullable of OpenAPI": {
		schema: `{"type":"object","properties":{"a":{"type":"string","nullable":true,"enum":["x",""]},"b":{"allOf":[{"$ref":"#/definitions/B"}],"nullable":true,"description":"B"}},"definitions":{"B":{"type":"object","properties":{"c":{"type":"string"}}}}}`,
		plain:  `{"$defs":{"B":{"properties":{"c":{"type":"string"}},"type":"object"}},"properties":{"a":{"enum":["x","",null],"type":["string","null"]},"b":{"anyOf":[{"allOf":[{"$ref":"#/$defs/B"}]},{"type":"null"}],"description":"B"}},"type":"object"}`,
		gemini: `{"properties":{"a":{"enum":["x"],"nullable":true,"type":"string"},"b":{"description":"B","nullable":true,"properties":{"c":{"type":"string"}},"type":"object"}},"type":"object"}`,
	},
	"values that are no text": {
		schema: `{"type":"object","properties":{"n":{"type":"integer","enum":[60,1440],"description":"Minutes."},"k":{"const":"fixed"},"m":{"enum":["a",1,null]},"f":{"const":true}},"required":["k","gone"]}`,
		plain:  `{"properties":{"f":{"const":true},"k":{"const":"fixed"},"m":{"enum":["a",1,null]},"n":{"description":"Minutes.","enum":[60,1440],"type":"integer"}},"required":["k","gone"],"type":"object"}`,
		gemini: `{"properties":{"f":{"description":"One of: true.","type":"boolean"},"k":{"enum":["fixed"],"type":"string"},"m":{"anyOf":[{"enum":["a"],"nullable":true,"type":"string"},{"description":"One of: 1.","nullable":true,"type":"number"}]},"n":{"description":"Minutes. One of: 60, 1440.","type":"integer"}},"required":["k"],"type":"object"}`,
	},
	"a union within": {
		schema: `{"type":"object","properties":{"v":{"description":"V","type":["string","integer","null"]},"w":{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"]},{"type":"object","additionalProperties":{"type":"string"}}],"description":"W"}}}`,
		plain:  `{"type":"object","properties":{"v":{"description":"V","type":["string","integer","null"]},"w":{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"]},{"type":"object","additionalProperties":{"type":"string"}}],"description":"W"}}}`,
		gemini: `{"properties":{"v":{"anyOf":[{"description":"V","nullable":true,"type":"string"},{"description":"V","nullable":true,"type":"integer"}]},"w":{"anyOf":[{"description":"W","properties":{"a":{"type":"string"}},"required":["a"],"type":"object"},{"description":"W","type":"object"}]}},"type":"object"}`,
	},
	"names that Anthropic refuses": {
		schema:    `{"type":"object","properties":{"filter[name]":{"type":"string"},"größe":{"type":"integer"}}}`,
		plain:     `{"type":"object","properties":{"filter[name]":{"type":"string"},"größe":{"type":"integer"}}}`,
		anthropic: `the tool t: the name of its argument`,
	},
}

func fit(t *testing.T, schema string, d toolform.Dialect) (string, error) {
	t.Helper()
	got, err := toolform.Fit(model.ToolSpec{Name: "t", Description: "T", InputSchema: json.RawMessage(schema)}, d)
	if err == nil {
		require.Equal(t, "T", got.Description)
	}
	return string(got.InputSchema), err
}

func TestForms(t *testing.T) {
	for name, c := range forms {
		t.Run(name, func(t *testing.T) {
			for d, want := range map[toolform.Dialect]string{toolform.Plain: c.plain, toolform.OpenAI: c.openai, toolform.Anthropic: c.anthropic, toolform.Gemini: c.gemini} {
				if want == "" {
					want = c.plain
				}
				got, err := fit(t, c.schema, d)
				if c.out != "" {
					require.ErrorContains(t, err, c.out)
					continue
				}
				if strings.HasPrefix(want, "the tool") {
					require.ErrorContains(t, err, want)
					continue
				}
				require.NoError(t, err)
				require.JSONEq(t, want, got, "%d", d)
				taken(t, got, d)
			}
		})
	}
}

func TestToolsThatDoNotFitAreLeftOut(t *testing.T) {
	list := []model.ToolSpec{
		{Name: "good", InputSchema: json.RawMessage(empty)},
		{Name: "text", InputSchema: json.RawMessage(`{"type":"string"}`)},
		{Name: "3d_render", InputSchema: json.RawMessage(empty)},
	}
	fits, out := toolform.FitAll(list, toolform.Gemini)
	require.Len(t, fits, 1)
	require.True(t, toolform.Bare(fits[0].InputSchema))
	require.Len(t, out, 2)
	require.ErrorContains(t, out[0], "the tool text: ")
	require.ErrorContains(t, out[1], "the tool 3d_render: its name does not begin with a letter")
	fits, out = toolform.FitAll(list, toolform.OpenAI)
	require.Len(t, fits, 2)
	require.Len(t, out, 1)
	require.Equal(t, empty, string(fits[0].InputSchema), "byte for byte as it came")
}

// TestSmallSchemasThatUnfoldStaySmall: references that a form has to repeat end at a bound.
func TestSmallSchemasThatUnfoldStaySmall(t *testing.T) {
	var defs strings.Builder
	for i := range 60 {
		n, m := string(rune('0'+i/10))+string(rune('0'+i%10)), string(rune('0'+(i+1)/10))+string(rune('0'+(i+1)%10))
		defs.WriteString(`"a` + n + `":{"allOf":[{"$ref":"#/$defs/a` + m + `"},{"$ref":"#/$defs/a` + m + `"}],"properties":{"x":{"$ref":"#/$defs/a` + m + `"},"y":{"$ref":"#/$defs/a` + m + `"}}},`)
	}
	for _, top := range []string{`"properties":{"p":{"$ref":"#/$defs/a00"}}`, `"$ref":"#/$defs/a00"`, `"anyOf":[{"$ref":"#/$defs/a00"},{"$ref":"#/$defs/a01"}]`} {
		for d := toolform.Plain; d <= toolform.Gemini; d++ {
			got, err := fit(t, `{"type":"object",`+top+`,"$defs":{`+defs.String()+`"a60":{"type":"object"}}}`, d)
			require.NoError(t, err)
			taken(t, got, d)
		}
	}
}

// taken checks a form by the rules of its provider.
func taken(t *testing.T, form string, d toolform.Dialect) {
	t.Helper()
	require.Less(t, len(form), 600<<10)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(form))
	require.NoError(t, err)
	top, ok := doc.(map[string]any)
	require.True(t, ok)
	require.Equal(t, "object", top["type"])
	require.IsType(t, map[string]any{}, top["properties"])
	for _, key := range []string{"anyOf", "oneOf", "allOf", "enum", "not", "$ref", "$schema"} {
		require.NotContains(t, top, key)
	}
	if d == toolform.Gemini {
		takenByGemini(t, top)
		return
	}
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("form.json", doc))
	_, err = c.Compile("form.json")
	require.NoError(t, err, form)
}

// geminiKeys lists the keywords that Gemini knows, by type.
var geminiKeys = map[any]string{
	"object": "properties required minProperties maxProperties", "array": "items minItems maxItems", "string": "enum format minLength maxLength pattern",
	"integer": "format minimum maximum", "number": "format minimum maximum", "boolean": "", nil: "anyOf",
}

func takenByGemini(t *testing.T, s map[string]any) {
	t.Helper()
	allowed, ok := geminiKeys[s["type"]]
	require.True(t, ok, "%v", s)
	if s["type"] != nil {
		allowed += " type description nullable"
	}
	for key := range s {
		require.Contains(t, strings.Fields(allowed), key, "%v", s)
	}
	if list, ok := s["anyOf"].([]any); ok {
		for _, e := range list {
			takenByGemini(t, e.(map[string]any))
		}
	}
	if s["type"] == "array" {
		takenByGemini(t, s["items"].(map[string]any))
	}
	values, _ := s["enum"].([]any)
	for _, v := range values {
		require.IsType(t, "", v)
		require.NotEmpty(t, v)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, p := range properties {
		takenByGemini(t, p.(map[string]any))
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		require.Contains(t, properties, name)
	}
}

// FuzzForm: any schema becomes a form that its provider takes, and a form stays as it is.
func FuzzForm(f *testing.F) {
	for _, c := range forms {
		f.Add([]byte(c.schema))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		for d := toolform.Plain; d <= toolform.Gemini; d++ {
			once, err := toolform.Fit(model.ToolSpec{Name: "t", InputSchema: schema}, d)
			if err != nil {
				require.ErrorContains(t, err, "the tool t: ")
				continue
			}
			taken(t, string(once.InputSchema), d)
			twice, err := toolform.Fit(once, d)
			require.NoError(t, err)
			require.Equal(t, string(once.InputSchema), string(twice.InputSchema), "%d", d)
		}
	})
}
