package schema

import (
	"encoding/json"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// worst are checks that can be made as large as the bound allows.
var worst = map[string]struct {
	schema string
	value  func(n int) string
}{
	"alternatives": {costly["alternatives that go into the arguments"].schema, func(n int) string { return nested(n, "x") }},
	"misfits":      {`{"items":{"anyOf":[` + list(9, `{"const":1},`) + `{"const":2}]}}`, func(n int) string { return `[` + list(n, `"x",`) + `1]` }},
	"objects":      {`{"items":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"n":{"type":"integer"}}}}`, func(n int) string { return `[` + list(n, `{"id":"x","n":1},`) + `{}]` }},
	"one hash":     {costly["lists that have one hash"].schema, func(n int) string { return `{"x":[` + list(n, `[[1],[%d]],`) + `[]]}` }},
	"patterns":     {`{"items":{"pattern":"^(a?){200}(b?){200}c$"}}`, func(n int) string { return `["` + strings.Repeat("a", n) + `"]` }},
	"alternations": {`{"items":{"pattern":"(x+x+)+(x+x+)+(a|b|ab|abc|x)*y"}}`, func(n int) string { return `["` + strings.Repeat("x", n) + `"]` }},
	"short texts":  {`{"items":{"pattern":"(a|b|ab)*c","type":"string"}}`, func(n int) string { return `[` + list(n, `"ababababab",`) + `"c"]` }},
	"names":        {costly["long lists of names"].schema, func(n int) string { return `{"x":[` + list(n, "{},") + `{}]}` }},
	"numbers":      {costly["long lists of numbers"].schema, func(n int) string { return `{"x":[` + list(n, "1e-400,") + `1]}` }},
	"limits":       {`{"items":{"type":"integer","minimum":1e300,"multipleOf":1e-300}}`, func(n int) string { return `[` + list(n, "1e-400,") + `1]` }},
	"unevaluated":  {`{"items":{"unevaluatedProperties":false,"anyOf":[` + list(50, `{"required":["x"]},`) + `{}]}}`, func(n int) string { return `[` + list(n, `{"a":1,"b":1,"c":1,"d":1},`) + `{}]` }},
	"chain":        {`{"items":` + strings.Repeat(`{"allOf":[`, 20) + `{"type":"string"}` + strings.Repeat(`]}`, 20) + `}`, func(n int) string { return `[` + list(n, `1,`) + `1]` }},
}

// BenchmarkWorstChecks measures checks of which the bound allows just as much.
func BenchmarkWorstChecks(b *testing.B) {
	for name, c := range worst {
		b.Run(name, func(b *testing.B) {
			s, err := Compile(json.RawMessage(c.schema))
			require.NoError(b, err)
			value := func(n int) any {
				v, err := decode([]byte(c.value(n)), ofResults)
				if err != nil {
					return nil
				}
				return v
			}
			n := sort.Search(200_000, func(n int) bool { v := value(n); return v == nil || !s.plan.affordable(v) }) - 1
			v := value(n)
			m := &meter{maxWork}
			m.visit(s.plan, v)
			before := processor(b)
			for b.Loop() {
				_ = s.compiled.Validate(v)
			}
			used := processor(b) - before
			b.ReportMetric(float64(maxWork-m.left), "units")
			b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N)/float64(maxWork-m.left), "cpu-ns/unit")
		})
	}
}

// processor returns the processor time of this process: a busy machine does not change it much.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkMeter measures the count of the work before a check.
func BenchmarkMeter(b *testing.B) {
	c := worst["objects"]
	s, err := Compile(json.RawMessage(c.schema))
	require.NoError(b, err)
	v, err := decode([]byte(c.value(9000)), ofResults)
	require.NoError(b, err)
	for b.Loop() {
		require.True(b, s.plan.affordable(v))
	}
}

// BenchmarkWorstCompiles measures the largest schemas that are compiled.
func BenchmarkWorstCompiles(b *testing.B) {
	for name, raw := range map[string]string{
		"wide":       `{"anyOf":[` + list(4000, `{},`) + `{}]}`,
		"types":      `{"properties":{` + list(1600, `"%d":{"type":"string"},`) + `"x":{}}}`,
		"wrong":      `{"properties":{` + list(1600, `"%d":{"type":"int"},`) + `"x":{}}}`,
		"wrong deep": `{"properties":{` + list(150, `"%d":{"type":"int","not":{"minimum":"1","items":{"required":true,"oneOf":[{"type":7},{"pattern":"("}]}}},`) + `"x":{}}}`,
		"strays":     `{"x":[` + list(340, `{"type":"string"},`) + `{}],"anyOf":[` + list(340, `{"$ref":"#/x/%d"},`) + `{}]}`,
		"names":      `{"anyOf":[` + list(28, `{"$id":"http://e.x/%d"},`) + list(1200, `{"$ref":"http://e.x/%d"},`) + `{}]}`,
		"patterns":   `{"properties":{` + list(20, `"%d":{"pattern":"^(x{500}){2}%d$"},`) + `"x":{}}}`,
		"broken ids": `{"properties":{` + list(29, `"%d":{"$id":"http://e.x/","type":"int"},`) + list(900, `"y%d":{"$anchor":"x"},`) + `"x":{}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			before := processor(b)
			for b.Loop() {
				_, err := Compile(json.RawMessage(raw))
				require.NoError(b, err)
			}
			b.ReportMetric(float64((processor(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
