package plainjson_test

import (
	"encoding/json"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

func TestMarshal(t *testing.T) {
	for want, v := range map[string]any{
		`"<b>&amp;</b>"`:         "<b>&amp;</b>",
		`{"a":"<","b":[1,null]}`: map[string]any{"b": []any{1, nil}, "a": "<"},
		`"line\nline"`:           "line\nline",
		`{"x":"<"}`:              json.RawMessage(` {"x": "<"} `),
		`null`:                   nil,
	} {
		got, err := plainjson.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("Marshal(%v) = %s, %v; want %s", v, got, err, want)
		}
	}
	for _, v := range []any{make(chan int), json.RawMessage(`{`)} {
		if got, err := plainjson.Marshal(v); err == nil {
			t.Errorf("Marshal(%v) = %s; want an error", v, got)
		}
	}
}

func TestAppendStringIsMarshal(t *testing.T) {
	for r := rune(-1); r < 0x3000; r++ {
		s := "a" + string(r) + "b\xf0\x28" + string(r)
		want, err := plainjson.Marshal(s)
		if got := plainjson.AppendString(nil, s); err != nil || string(got) != string(want) {
			t.Fatalf("%q became %s; want %s", s, got, want)
		}
	}
}

func FuzzMarshal(f *testing.F) {
	f.Add("<b>\u2028&\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := plainjson.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if quick := string(plainjson.AppendString(nil, s)); quick != string(got) {
			t.Fatalf("%q became %s, and appended %s", s, got, quick)
		}
		var back, want string
		escaped, err := json.Marshal(s)
		if err != nil || json.Unmarshal(got, &back) != nil || json.Unmarshal(escaped, &want) != nil || back != want {
			t.Fatalf("%q became %s, which reads %q", s, got, back)
		}
	})
}
