package gen

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// part is embedded, and shared the type of a member.
type (
	part struct {
		A string `json:"a"`
	}
	shared struct {
		B    int     `json:"b"`
		Self *shared `json:"self,omitempty"`
	}
	whole struct {
		part
		One  shared          `json:"one"`
		More []shared        `json:"more,omitempty"`
		Raw  json.RawMessage `json:"raw,omitempty"`
		Out  chan int        `json:"-"`
	}
)

// TestTypes: a type is defined once, what is embedded is referred to, and a closed type
// refuses what neither names.
func TestTypes(t *testing.T) {
	d := newDefinitions(&comments{fields: map[string]string{"whole.One": "the first"}})
	d.closed = true
	const want = `{"type": "object", "allOf": [{"$ref": "#/$defs/part"}], "properties": ` +
		`{"one": {"$ref": "#/$defs/shared", "description": "the first"}, "more": {"type": "array", "items": {"$ref": "#/$defs/shared"}}, "raw": {}}, ` +
		`"required": ["one"], "unevaluatedProperties": false}`
	if got := compact(t, d.object(reflect.TypeFor[whole](), true)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	const ofShared = `{"type": "object", "properties": {"b": {"type": "integer"}, "self": {"$ref": "#/$defs/shared"}}, ` +
		`"required": ["b"], "additionalProperties": false}`
	if got := compact(t, d.types["shared"]); got != ofShared {
		t.Errorf("got  %s\nwant %s", got, ofShared)
	}
	if got := compact(t, d.types["part"]); strings.Contains(got, "additional") {
		t.Errorf("a part refuses the members of the whole: %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a type is both closed and a part of another")
		}
	}()
	d.extend(reflect.TypeFor[shared]())
}

func compact(t *testing.T, s node) string {
	t.Helper()
	names, values, brackets := parts(s)
	var b bytes.Buffer
	if err := inline(&b, names, values, brackets); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestEncode: what is written is the same JSON, and no line is longer than it has to be.
func TestEncode(t *testing.T) {
	long := strings.Repeat("x", width)
	value := node{
		"$defs": node{"<b>&": node{"const": true, "enum": []any{nil, 1.5, "a"}}}, "title": long, "required": []string{},
		"anyOf": []node{{}, {"not": node{"type": []string{"string", "null"}}}},
		"enum":  strings.Split(strings.Repeat("word ", 60)+"end", " "),
	}
	raw, err := encode(value)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	plain, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(raw, &got) != nil || json.Unmarshal(plain, &want) != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s is not %s", raw, plain)
	}
	if !strings.HasPrefix(string(raw), "{\n  \"title\": ") || !strings.Contains(string(raw), "<b>&") {
		t.Fatalf("keywords are not in order, or escaped: %s", raw)
	}
	for line := range strings.Lines(string(raw)) {
		if len(line) > width+2 && !strings.Contains(line, long) {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if _, err := encode(node{"const": make(chan int)}); err == nil {
		t.Error("what is no JSON was encoded")
	}
}

// TestExamples: a type asks for what all of its examples have, a message for what its own
// has, and what no frame has needs a reason.
func TestExamples(t *testing.T) {
	type inner struct {
		Old string `json:"old"`
		New string `json:"new"`
	}
	type content struct {
		List []inner `json:"list"`
	}
	of, old := reflect.TypeFor[content](), node{"list": []any{node{"old": "x", "never": 1.0}}}
	e := newExamples(map[string]string{"first content.list.never": "of a reason", "other content.none": "of a reason"})
	e.message = "first"
	if err := e.read(of, "content", old); err != nil {
		t.Fatal(err)
	}
	d := newDefinitions(&comments{})
	d.closed, d.finish = true, e.finish
	d.ref(of)
	const want = `{"type": "object", "properties": {"old": {"type": "string"}, "new": {"type": "string"}, ` +
		`"never": {"description": "Never sent by this version: of a reason.", "type": "number"}}, "required": ["old"], "additionalProperties": false}`
	if got := compact(t, d.types["inner"]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := e.stricter(of, old); got != nil {
		t.Errorf("the message with the example asks for %v", got)
	}
	const asks = `{"properties": {"list": {"items": {"properties": {"never": false}, "required": ["new"]}}}}`
	if got := compact(t, e.stricter(of, nil)); got != asks {
		t.Errorf("a message without an example asks for %s", got)
	}
	if err := e.unread(); err == nil || !strings.Contains(err.Error(), "other content.none") {
		t.Errorf("unread does not report a member without an example: %v", err)
	}
	e.message = "second"
	if err := e.read(of, "content", old); err == nil {
		t.Error("a member is never sent, and no reason is given")
	}
}
