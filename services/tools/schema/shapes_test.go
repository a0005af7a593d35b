package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/tools/schema"
)

// shape is a schema as tool servers really send it, and the verdicts that it has to give.
type shape struct {
	schema    string
	unchecked string // the keywords that are not checked, one line each
	takes     string // arguments, one object each line
	refuses   string
}

// shapes are those of generators and of hand-written servers: pydantic and FastMCP, zod-to-json-schema of several versions,
// OpenAPI 3.0 in many languages, schemars, Java and PHP servers.
var shapes = map[string]shape{
	"nothing":     {schema: ``, takes: `{}` + "\n" + `{"a":1}`},
	"null":        {schema: `null`, takes: `{}`},
	"true":        {schema: `true`, takes: `{"a":1}`},
	"empty":       {schema: `{}`, takes: `{"a":1}`},
	"draft alone": {schema: `{"$schema":"http://json-schema.org/draft-07/schema#"}`, takes: `{"a":1}`},
	"no type":     {schema: `{"properties":{"a":{"type":"string"}},"required":["a"]}`, takes: `{"a":"x"}`, refuses: `{}` + "\n" + `{"a":1}`},
	"lookahead": {
		schema:    `{"type":"object","properties":{"name":{"type":"string","pattern":"^(?!\\s*$).+","maxLength":5}}}`,
		unchecked: "/properties/name/pattern: error parsing regexp: invalid or unsupported Perl syntax: `(?!`",
		takes:     `{"name":"x"}` + "\n" + `{"name":" "}`, refuses: `{"name":7}` + "\n" + `{"name":"toolong"}`,
	},
	"email of zod 4": {
		schema:    `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"email":{"type":"string","format":"email","pattern":"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"}},"required":["email"],"additionalProperties":false}`,
		unchecked: "/properties/email/pattern: error parsing regexp", takes: `{"email":"a@example.com"}`, refuses: `{}` + "\n" + `{"email":1}`,
	},
	"escapes of ECMAScript": {
		schema:    `{"type":"object","properties":{"a":{"type":"string","pattern":"^[\\u4e00-\\u9fa5]+$"},"b":{"type":"string","pattern":"^[a-z]+$"}}}`,
		unchecked: "/properties/a/pattern: error parsing regexp", takes: `{"a":"?"}`, refuses: `{"b":"A"}`,
	},
	"pattern of properties": {
		schema:    `{"type":"object","patternProperties":{"^(?=x)":{"type":"string"},"^n_":{"type":"number"}},"additionalProperties":false}`,
		unchecked: "/patternProperties/^(?=x): error parsing regexp", takes: `{"xa":1,"b":true}`, refuses: `{"n_a":"x"}`,
	},
	"boolean limits": {
		schema: `{"type":"object","properties":{"n":{"type":"integer","minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}}}`,
		takes:  `{"n":1}` + "\n" + `{"n":9}`, refuses: `{"n":0}` + "\n" + `{"n":10}`,
	},
	"boolean limits in 2020-12": {
		schema: `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"ttl":{"type":"integer","exclusiveMinimum":true,"minimum":0,"maximum":9007199254740991}}}`,
		takes:  `{"ttl":1}`, refuses: `{"ttl":0}`,
	},
	"boolean limit alone": {
		schema: `{"type":"object","properties":{"n":{"type":"number","exclusiveMaximum":true}}}`, takes: `{"n":1}`, refuses: `{"n":"1"}`,
	},
	"draft 4": {
		schema: `{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://example.com/a","type":"object","properties":{"n":{"type":"integer","minimum":0,"exclusiveMinimum":true}}}`,
		takes:  `{"n":1}`, refuses: `{"n":0}`,
	},
	"draft 4 with later keywords": {
		schema: `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":0},"m":{"minimum":0,"exclusiveMinimum":true}}}`,
		takes:  `{"n":1}`, refuses: `{"n":0}` + "\n" + `{"m":0}`,
	},
	"draft 3": {
		schema:    `{"$schema":"http://json-schema.org/draft-03/schema#","type":"object","properties":{"a":{"type":"any","required":true},"b":{"type":"string"}}}`,
		unchecked: "/properties/a/required: got boolean, want array\n/properties/a/type: value must be one of", takes: `{"a":1}` + "\n" + `{}`, refuses: `{"b":1}`,
	},
	"unknown draft": {
		schema:    `{"$schema":"https://example.com/dialects/tools","type":"object","properties":{"a":{"type":"string"}}}`,
		unchecked: "/$schema: the draft is unknown", takes: `{"a":"x"}`, refuses: `{"a":1}`,
	},
	"https draft 7": {
		schema: `{"$schema":"https://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string"}}}`, takes: `{"a":"x"}`, refuses: `{"a":1}`,
	},
	"required flag": {
		schema:    `{"type":"object","properties":{"x":{"type":"string","required":true},"y":{"type":"string","required":false}}}`,
		unchecked: "/properties/x/required: got boolean, want array\n/properties/y/required: got boolean, want array", takes: `{}`, refuses: `{"x":1}`,
	},
	"required word": {
		schema: `{"type":"object","properties":{"x":{"type":"string"}},"required":"x"}`, unchecked: "/required: got string, want array", takes: `{}`, refuses: `{"x":1}`,
	},
	"type int": {
		schema:    `{"type":"object","properties":{"x":{"type":"int","minimum":3},"y":{"type":["str","null"]},"z":{"type":"String"}}}`,
		unchecked: "/properties/x/type: value must be one of\n/properties/y/type: value must be\n/properties/z/type: value must be one of", takes: `{"x":"text"}` + "\n" + `{"y":1}`, refuses: `{"x":2}`,
	},
	"type null of a serializer": {
		schema: `{"type":"object","properties":{"x":{"type":null,"enum":["a"]}}}`, unchecked: "/properties/x/type: value must be one of", takes: `{"x":"a"}`, refuses: `{"x":"b"}`,
	},
	"empty items": {
		schema: `{"type":"object","properties":{"x":{"type":"array","items":[]}}}`, takes: `{"x":[1,"a"]}`, refuses: `{"x":1}`,
	},
	"tuple": {
		schema: `{"type":"object","properties":{"x":{"type":"array","items":[{"type":"string"},{"type":"number"}],"additionalItems":false}}}`,
		takes:  `{"x":["a",1]}`, refuses: `{"x":[1,1]}` + "\n" + `{"x":["a",1,1]}`,
	},
	"tuple of draft 7": {
		schema: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"x":{"type":"array","items":[{"type":"string"}]}}}`, takes: `{"x":["a",1]}`, refuses: `{"x":[1]}`,
	},
	"empty list for an empty object": {
		schema: `{"type":"object","properties":[],"required":[],"additionalProperties":false}`, takes: `{}`, refuses: `{"a":1}`,
	},
	"schema that is a word": {
		schema:    `{"type":"object","properties":{"a":{"type":"string"},"type":"object"},"additionalProperties":false}`,
		unchecked: "/properties/type: got string, want boolean or object", takes: `{"type":1}`, refuses: `{"a":1}` + "\n" + `{"b":1}`,
	},
	"properties that are a list": {
		schema:    `{"type":"object","properties":[{"name":"a"}],"required":["a"],"additionalProperties":false}`,
		unchecked: "/properties: got array, want object\n/additionalProperties: it depends on properties", takes: `{"a":1,"b":2}`, refuses: `{"b":1}`,
	},
	"null allowed as in OpenAPI": {
		schema: `{"type":"object","properties":{"a":{"type":"string","nullable":true},"b":{"type":"string","enum":["x"],"nullable":true},"c":{"$ref":"#/$defs/c","nullable":true},"d":{"allOf":[{"$ref":"#/$defs/c"}],"nullable":true},"e":{"oneOf":[{"type":"null"},{"type":"string"}],"nullable":true},"f":{"type":"string","nullable":false}},"$defs":{"c":{"type":"integer"}}}`,
		takes:  `{"a":null,"b":null,"c":null,"d":null,"e":null}` + "\n" + `{"a":"x","b":"x","c":1,"d":2,"e":"x"}`, refuses: `{"a":1}` + "\n" + `{"b":"y"}` + "\n" + `{"c":"x"}` + "\n" + `{"d":"x"}` + "\n" + `{"f":null}`,
	},
	"argument named like a keyword": {
		schema: `{"type":"object","properties":{"nullable":{"type":"boolean"},"pattern":{"type":"string"},"required":{"type":"boolean"},"items":{"type":"array"},"$ref":{"type":"string"},"type":{"type":"string"}},"required":["pattern"]}`,
		takes:  `{"pattern":"(?!","required":true,"nullable":true,"$ref":"x"}`, refuses: `{}` + "\n" + `{"pattern":1}`,
	},
	"formats of other worlds": {
		schema: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"integer","format":"uint64","minimum":0},"b":{"type":"string","format":"path"},"c":{"type":"string","format":"google-duration"},"d":{"format":7,"type":"string"}}}`,
		takes:  `{"a":1,"b":"x","c":"y","d":"z"}`, refuses: `{"a":-1}` + "\n" + `{"d":1}`, unchecked: "/properties/d/format: got number, want string",
	},
	"optional of pydantic": {
		schema: `{"type":"object","title":"searchArguments","properties":{"q":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"Q"},"o":{"$ref":"#/$defs/Order"}},"$defs":{"Order":{"enum":["asc","desc"],"title":"Order","type":"string"}},"required":["o"]}`,
		takes:  `{"q":null,"o":"asc"}`, refuses: `{"o":"up"}` + "\n" + `{"q":1,"o":"asc"}`,
	},
	"model of pydantic that refers to itself": {
		schema: `{"$ref":"#/$defs/Issue","$defs":{"Issue":{"type":"object","properties":{"id":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/Issue"},"default":[]}},"required":["id"]}}}`,
		takes:  `{"id":"1","children":[{"id":"2"}]}`, refuses: `{"id":"1","children":[{}]}`,
	},
	"named schema of zod": {
		schema: `{"$ref":"#/definitions/Args","definitions":{"Args":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"$ref":"#/definitions/Args/properties/a"}}},"required":["a"],"additionalProperties":false}},"$schema":"http://json-schema.org/draft-07/schema#"}`,
		takes:  `{"a":"x","b":["y"]}`, refuses: `{}` + "\n" + `{"a":"x","b":[1]}`,
	},
	"components of OpenAPI": {
		schema: `{"type":"object","properties":{"pet":{"$ref":"#/components/schemas/Pet"}},"components":{"schemas":{"Pet":{"type":"object","properties":{"age":{"type":"int32","minimum":0},"tag":{"$ref":"#/components/schemas/Tag"}}},"Tag":{"type":"string"}}}}`,
		takes:  `{"pet":{"age":1,"tag":"x"}}`, refuses: `{"pet":{"age":-1}}` + "\n" + `{"pet":{"tag":1}}`, unchecked: "/components/schemas/Pet/properties/age/type: value must be one of",
	},
	"reference to nothing": {
		schema:    `{"type":"object","properties":{"s":{"type":"array","items":{"$ref":"#/$defs/ScreenInstance"}},"n":{"type":"integer"}}}`,
		unchecked: "/properties/s/items/$ref: the reference leads nowhere", takes: `{"s":[1]}`, refuses: `{"s":1}` + "\n" + `{"n":"x"}`,
	},
	"reference by name to nothing": {
		schema: `{"type":"object","properties":{"s":{"$ref":"Pet"},"t":{"$ref":"#Pet"},"n":{"type":"integer"}}}`, takes: `{"s":1,"t":1}`, refuses: `{"n":"x"}`,
		unchecked: "/properties/s/$ref: the reference leads to another document\n/properties/t/$ref: the reference leads nowhere",
	},
	"names of generics": {
		schema: `{"type":"object","properties":{"p":{"$ref":"#/definitions/Page<User>"},"q":{"$ref":"#/definitions/Map%C2%ABstring,object%C2%BB"},"r":{"$ref":"#/definitions/List[int]"}},"definitions":{"Page<User>":{"type":"object"},"Map«string,object»":{"type":"object"},"List[int]":{"type":"array"}}}`,
		takes:  `{"p":{},"q":{},"r":[]}`, refuses: `{"p":1}` + "\n" + `{"q":1}` + "\n" + `{"r":1}`,
	},
	"anchors": {
		schema: `{"type":"object","properties":{"a":{"$ref":"#text"}},"$defs":{"t":{"$anchor":"text","type":"string"}}}`, takes: `{"a":"x"}`, refuses: `{"a":1}`,
	},
	"anchors, one of them twice": {
		schema:    `{"type":"object","properties":{"a":{"$ref":"#text"},"n":{"type":"integer"}},"$defs":{"t":{"$anchor":"text","type":"string"},"u":{"$anchor":"text","type":"string"}}}`,
		unchecked: "/properties/a/$ref: the reference leads nowhere", takes: `{"a":1}`, refuses: `{"n":"x"}`,
	},
	"document with an id": {
		schema: `{"$id":"https://example.com/tool.json","type":"object","properties":{"a":{"$ref":"#/$defs/t"},"b":{"$ref":"tool.json#/$defs/t"}},"$defs":{"t":{"type":"string"}}}`, takes: `{"a":"x"}`, refuses: `{"a":1}` + "\n" + `{"b":1}`,
	},
	"id that is no address": {
		schema: `{"$id":"my tool:%%","type":"object","properties":{"a":{"type":"string"}}}`, unchecked: "/$id", takes: `{"a":"x"}`, refuses: `{"a":1}`,
	},
	"empty alternatives": {
		schema: `{"type":"object","properties":{"a":{"anyOf":[],"type":"string"}}}`, unchecked: "/properties/a/anyOf: minItems", takes: `{"a":"x"}`, refuses: `{"a":1}`,
	},
	"enum that is no list": {
		schema: `{"type":"object","properties":{"a":{"enum":"x","type":"string"},"b":{"enum":[],"type":"string"}}}`, unchecked: "/properties/a/enum: got string, want array", takes: `{"a":"y"}`, refuses: `{"a":1}`,
	},
	"limits as text": {
		schema:    `{"type":"object","properties":{"a":{"type":"string","minLength":"1","maxLength":3.5},"b":{"type":"number","multipleOf":0},"c":{"type":"array","minItems":-1,"items":{"type":"string"}}}}`,
		unchecked: "/properties/a/maxLength\n/properties/a/minLength: got string, want integer\n/properties/b/multipleOf\n/properties/c/minItems", takes: `{"a":"","b":1}`, refuses: `{"a":1}` + "\n" + `{"c":[1]}`,
	},
	"not above a part that is not checked": {
		schema:    `{"type":"object","properties":{"a":{"not":{"type":"string","pattern":"(?=x)"}},"b":{"type":"string"}}}`,
		unchecked: "/properties/a/not/pattern\n/properties/a/not: it depends on a part that is not checked", takes: `{"a":"y"}`, refuses: `{"b":1}`,
	},
	"one of, above a part that is not checked": {
		schema:    `{"type":"object","properties":{"a":{"oneOf":[{"$ref":"#/$defs/p"},{"type":"string","maxLength":3}]}},"$defs":{"p":{"type":"string","pattern":"(?=x)"}}}`,
		unchecked: "/$defs/p/pattern\n/properties/a/oneOf: several may match", takes: `{"a":"abc"}`, refuses: `{"a":1}`,
	},
	"if above a part that is not checked": {
		schema:    `{"type":"object","properties":{"k":{"type":"string"}},"if":{"properties":{"k":{"pattern":"(?=x)"}}},"then":{"required":["x"]},"else":{"required":["y"]}}`,
		unchecked: "/if/properties/k/pattern\n/if: it depends\n/then: it depends\n/else: it depends", takes: `{"k":"x"}` + "\n" + `{"k":"a"}`, refuses: `{"k":1}`,
	},
	"unevaluated beside a part that is not checked": {
		schema:    `{"type":"object","allOf":[{"$ref":"https://example.com/base"}],"properties":{"a":{"type":"string"}},"unevaluatedProperties":false}`,
		unchecked: "/allOf/0/$ref\n/unevaluatedProperties: it depends", takes: `{"b":1}`, refuses: `{"a":1}`,
	},
	"beside a reference in draft 7": {
		schema:    `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"https://example.com/x","type":"string"},"b":{"type":"string"}}}`,
		unchecked: "/properties/a/$ref", takes: `{"a":1}`, refuses: `{"b":1}`,
	},
	"contains with a limit that is wrong": {
		schema:    `{"type":"object","properties":{"a":{"type":"array","contains":{"type":"string"},"minContains":"0"}}}`,
		unchecked: "/properties/a/minContains\n/properties/a/contains: it depends on minContains", takes: `{"a":[]}`, refuses: `{"a":1}`,
	},
}

func TestSchemasOfRealServers(t *testing.T) {
	for name, c := range shapes {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Compile(json.RawMessage(c.schema))
			require.NoError(t, err)
			unchecked := s.Unchecked()
			if c.unchecked == "" {
				require.Empty(t, unchecked)
			} else {
				want := strings.Split(c.unchecked, "\n")
				for _, line := range want {
					require.Contains(t, "\n"+strings.Join(unchecked, "\n"), "\n"+line)
				}
			}
			for args := range strings.Lines(c.takes) {
				require.NoError(t, check(s, json.RawMessage(args)), args)
			}
			for args := range strings.Lines(c.refuses) {
				require.Error(t, check(s, json.RawMessage(args)), args)
			}
		})
	}
}
