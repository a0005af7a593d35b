package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// doubling returns a schema of a few kilobytes each of whose definitions applies the next one twice.
func doubling(levels int, twice string) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"x":{"$ref":"#/$defs/a0"}},"$defs":{`)
	for i := range levels {
		next := fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i+1)
		fmt.Fprintf(&b, `"a%d":%s,`, i, strings.ReplaceAll(twice, "NEXT", next))
	}
	fmt.Fprintf(&b, `"a%d":{"type":"string"}}}`, levels)
	return b.String()
}

func TestSchemasWhoseChecksHaveNoBoundAreRefused(t *testing.T) {
	chain := doubling(200, `{"allOf":[NEXT]}`)
	for name, c := range map[string]struct {
		schema string
		want   error
	}{
		"all of":             {doubling(60, `{"allOf":[NEXT,NEXT]}`), errUnfolds},
		"any of":             {doubling(60, `{"anyOf":[NEXT,NEXT]}`), errUnfolds},
		"one of":             {doubling(60, `{"oneOf":[NEXT,NEXT]}`), errUnfolds},
		"not, if":            {doubling(60, `{"not":NEXT,"if":NEXT,"then":NEXT}`), errUnfolds},
		"beside a reference": {doubling(60, `{"$ref":"#/$defs/a60","allOf":[NEXT,NEXT]}`), errUnfolds},
		"dependent schemas":  {doubling(60, `{"dependentSchemas":{"a":NEXT,"b":NEXT}}`), errUnfolds},
		"dependencies":       {doubling(60, `{"dependencies":{"a":NEXT,"b":NEXT}}`), errUnfolds},
		"draft 7":            {`{"$schema":"http://json-schema.org/draft-07/schema#",` + doubling(60, `{"allOf":[NEXT,NEXT]}`)[1:], errUnfolds},
		"with a part that is not checked": {
			doubling(60, `{"pattern":"(?=x)","minimum":"1","allOf":[NEXT,NEXT]}`), errUnfolds,
		},
		"long chain":         {chain, errChain},
		"itself":             {`{"$ref":"#"}`, errEndless},
		"itself in a part":   {`{"properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/properties/a"}]}}}`, errEndless},
		"each other":         {`{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"allOf":[{"$ref":"#/$defs/c"}]},"c":{"not":{"$ref":"#/$defs/b"}}}}`, errEndless},
		"a dynamic one":      {`{"$dynamicAnchor":"x","allOf":[{"$dynamicRef":"#x"}]}`, errEndless},
		"a recursive one":    {`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"anyOf":[{"$recursiveRef":"#"}]}`, errEndless},
		"many names":         {`{"anyOf":[{"$id":"http://e.x/0"}` + list(200, `,{"$id":"http://e.x/%d"}`) + `]}`, errTooMany},
		"many stray targets": {`{"x":[` + list(1200, `{"type":"string"},`) + `{}],"anyOf":[` + list(1200, `{"$ref":"#/x/%d"},`) + `{}]}`, errTooMany},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(json.RawMessage(c.schema))
			require.ErrorIs(t, err, c.want)
		})
	}
}

func list(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if strings.Contains(format, "%d") {
			fmt.Fprintf(&b, format, i+1)
		} else {
			b.WriteString(format)
		}
	}
	return b.String()
}

// nested returns depth objects within each other.
func nested(depth int, name string) string {
	return strings.Repeat(`{"`+name+`":`, depth) + "{}" + strings.Repeat("}", depth)
}

// costly are schemas that are sound, and arguments whose check would take a processor for a long time.
var costly = map[string]struct{ schema, arguments string }{
	"alternatives that go into the arguments": {
		`{"type":"object","properties":{"x":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"required":["y"],"properties":{"x":{"$ref":"#/$defs/n"}}},{"required":["z"],"properties":{"x":{"$ref":"#/$defs/n"}}}]}}}`,
		nested(31, "x"),
	},
	"patterns of names that all match": {
		`{"$ref":"#/$defs/n","$defs":{"n":{"not":{"patternProperties":{"x":{"$ref":"#/$defs/n"},"^x":{"$ref":"#/$defs/n"},"x$":{"$ref":"#/$defs/n"}}}}}}`,
		nested(31, "x"),
	},
	"properties and all others": {
		`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"x":{"$ref":"#/$defs/n"}},"unevaluatedProperties":false,"allOf":[{"additionalProperties":{"$ref":"#/$defs/n"}}]}}}`,
		nested(31, "x"),
	},
	"items and contains": {
		`{"properties":{"x":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"},"contains":{"$ref":"#/$defs/n"}}}}`,
		`{"x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`,
	},
	"lists that have one hash": {
		`{"properties":{"x":{"type":"array","anyOf":[` + list(100, `{"uniqueItems":true,"maxItems":1},`) + `{"uniqueItems":true}]}}}`,
		`{"x":[` + list(1200, `[[1],[%d]],`) + `[]]}`,
	},
	"a long text and large patterns": {
		`{"properties":{"x":{"allOf":[` + list(8, `{"pattern":"(a{1,1000}b{1,1000}){1}c%d"},`) + `{}]}}}`,
		`{"x":"` + strings.Repeat("a", 100_000) + `"}`,
	},
	"long lists of names": {
		`{"properties":{"x":{"items":{"required":[` + list(9000, `"%d",`) + `"x"]}}}}`,
		`{"x":[` + list(4900, "{},") + `{}]}`,
	},
	"long lists of numbers": {
		`{"properties":{"x":{"items":{"enum":[` + list(5000, `%d1e-400,`) + `7]}}}}`,
		`{"x":[` + list(9000, "1e-400,") + `1]}`,
	},
}

func TestChecksThatTakeTooLongAreRefused(t *testing.T) {
	for name, c := range costly {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(c.schema))
			require.NoError(t, err)
			require.Empty(t, s.Unchecked())
			_, err = s.Arguments(json.RawMessage(c.arguments))
			var f *fault.Fault
			require.True(t, errors.As(err, &f))
			require.Equal(t, fault.ToolBadInput, f.Code)
			require.Contains(t, f.Message, "too long to check")
			err = s.CheckResult(json.RawMessage(c.arguments))
			require.True(t, errors.As(err, &f))
			require.Equal(t, fault.BadOutput, f.Code)
			require.Contains(t, f.Message, "too long to check")
			_, err = s.Arguments(nil)
			require.False(t, errors.As(err, &f) && strings.Contains(f.Message, "too long"), "small ones are checked")
		})
	}
}

// TestPatternsThatAreTooLargeAreNotChecked: the programs of a schema's patterns have a bound.
func TestPatternsThatAreTooLargeAreNotChecked(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"properties":{"a":{"pattern":"a{1,1000}b{1,1000}c{1,1000}d{1,1000}e{1,1000}f{1,1000}g{1,1000}h{1,1000}i{1,1000}j{1,1000}k{1,1000}"},"b":{"pattern":"^` + strings.Repeat("x", maxPattern) + `"},"c":{"pattern":"^(x{100}){10}$"}}}`))
	require.NoError(t, err)
	require.Len(t, s.Unchecked(), 2)
	require.Contains(t, s.Unchecked()[0], "too large")
	s, err = Compile(json.RawMessage(`{"allOf":[` + list(1000, `{"pattern":"%d(a{1000}){1}"},`) + `{}]}`))
	require.NoError(t, err)
	require.Len(t, s.Unchecked(), maxUnchecked+1)
}

// TestLargeArgumentsAndResultsAreChecked: what real tools get and answer is far below the bound.
func TestLargeArgumentsAndResultsAreChecked(t *testing.T) {
	rows := `{"rows":[` + strings.TrimSuffix(list(9000, `{"id":%d,"name":"a","tags":["x","y"],"at":"2026-01-01T00:00:00Z","note":null},`), ",") + `]}`
	s, err := Compile(json.RawMessage(`{"type":"object","properties":{"rows":{"type":"array","items":{"$ref":"#/$defs/row"}}},"$defs":{"row":{"type":"object","additionalProperties":false,"required":["id"],"properties":{
		"id":{"type":"integer","minimum":0},"name":{"type":"string","pattern":"^[a-z]{1,64}$"},"tags":{"type":"array","items":{"enum":["x","y","z"]},"uniqueItems":true},"at":{"type":"string","format":"date-time"},"note":{"anyOf":[{"type":"string"},{"type":"null"}]}}}}}`))
	require.NoError(t, err)
	require.NoError(t, s.CheckResult(json.RawMessage(rows)))
	require.Error(t, s.CheckResult(json.RawMessage(strings.Replace(rows, `"id":8999`, `"id":"8999"`, 1))))

	tree, err := Compile(json.RawMessage(`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#/$defs/n"}},"or":{"type":"array","items":{"$ref":"#/$defs/n"}},"not":{"$ref":"#/$defs/n"},"field":{"type":"string"}},"anyOf":[{"required":["and"]},{"required":["or"]},{"required":["not"]},{"required":["field"]}]}}}`))
	require.NoError(t, err)
	deep := strings.Repeat(`{"and":[{"field":"a"},{"not":`, 9) + `{"field":"b"}` + strings.Repeat(`}]}`, 9)
	_, err = tree.Arguments(json.RawMessage(deep))
	require.NoError(t, err)
}
