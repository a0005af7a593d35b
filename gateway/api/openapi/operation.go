package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/proto-schemas/bundle"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// object is a JSON object of the document.
type object = map[string]any

// Faults that every route has, and that every route with credentials has.
var (
	anyFault  = []fault.Code{fault.Internal, fault.HostRefused, fault.OriginRefused, fault.RateLimited}
	authFault = []fault.Code{fault.Unauthenticated, fault.Expired, fault.Forbidden, fault.BusUnavailable, fault.Overloaded, fault.QuotaExceeded}
)

// components returns the schemas of the bodies, whose references lead to components of the document.
func components() (object, error) {
	text := strings.ReplaceAll(bundle.API(), `"#/$defs/`, `"#/components/schemas/`)
	var schema struct {
		Defs object `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		return nil, fmt.Errorf("read the schemas of the bodies: %w", err)
	}
	return schema.Defs, nil
}

// operation returns the description of a route.
func (r Route) operation(prefix string, schemas object) (object, error) {
	op := object{"operationId": r.ID, "summary": r.Summary, "tags": []string{r.Tag}, "x-codeSamples": []object{r.sample(prefix)}}
	if r.Public {
		op["security"] = []object{}
	}
	if all := r.parameters(); len(all) > 0 {
		op["parameters"] = all
	}
	if r.Body != nil {
		s, err := schemaOf(r.Body, schemas)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.ID, err)
		}
		op["requestBody"] = object{"required": r.Required, "content": object{"application/json": object{"schema": s, "example": json.RawMessage(r.Example)}}}
	}
	responses := r.problems()
	for _, a := range r.Answers {
		one := object{"description": a.About}
		switch {
		case a.Type != nil:
			s, err := schemaOf(a.Type, schemas)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.ID, err)
			}
			one["content"] = object{"application/json": object{"schema": s}}
		case a.Media == respond.MediaEvents || a.Media == respond.MediaLines:
			one["content"] = object{a.Media: object{"schema": object{"type": "string"}}}
		case a.Media == respond.MediaBytes:
			one["content"], one["headers"] = files(a), fileHeaders
		case a.Media != "":
			one["content"] = object{a.Media: object{"schema": object{"type": "object"}}}
		}
		if a.Status == http.StatusCreated {
			one["headers"] = object{"Location": object{"description": "Path of the resource.", "schema": object{"type": "string"}}}
		}
		status := strconv.Itoa(a.Status)
		if other, ok := responses[status].(object); ok { // the request's Accept decides between them
			one = either(other, one)
		}
		responses[status] = one
	}
	op["responses"] = responses
	return op, nil
}

// fileHeaders are those of every file.
var fileHeaders = object{
	"Repr-Digest":         object{"description": "SHA-256 of the file (RFC 9530).", "schema": object{"type": "string"}},
	"Content-Disposition": object{"description": "Of a file that is not shown as an image: attachment, with its name if it has one.", "schema": object{"type": "string"}},
}

// files returns the contents of an answer with a file, by media type.
func files(a Answer) object {
	content := object{}
	for _, media := range append([]string{a.Media}, a.Images...) {
		content[media] = object{"schema": object{"type": "string", "format": "binary"}}
	}
	return content
}

// sample is the request at the command line.
func (r Route) sample(prefix string) object {
	words := []string{"curl"}
	if r.Method != http.MethodGet && (r.Method != http.MethodPost || r.Body == nil) {
		words = append(words, "-X", r.Method)
	}
	words = append(words, `"$WAGGLE`+prefix+r.Path+`"`)
	if !r.Public {
		words = append(words, `-H "Authorization: Bearer $KEY"`)
	}
	if r.Body != nil {
		words = append(words, "-H 'Content-Type: application/json' -d '"+strings.ReplaceAll(r.Example, "'", `'\\''`)+"'")
	}
	return object{"lang": "Shell", "label": "curl", "source": strings.Join(words, " ")}
}

// either merges two responses that have the same status.
func either(a, b object) object {
	content := object{}
	for _, r := range []object{a, b} {
		if of, ok := r["content"].(object); ok {
			maps.Copy(content, of)
		}
	}
	return object{"description": fmt.Sprint(a["description"], " ", b["description"]), "content": content}
}

// problems returns the responses to failed requests, by status.
func (r Route) problems() object {
	codes := slices.Concat(anyFault, r.Faults)
	if r.Body != nil {
		codes = append(codes, fault.MediaType)
	}
	if !r.Public {
		codes = append(codes, authFault...)
	}
	of := map[string][]string{}
	for _, c := range codes {
		status := strconv.Itoa(fault.Lookup(c).Status)
		of[status] = append(of[status], string(c))
	}
	out := object{}
	for status, names := range of {
		slices.Sort(names)
		out[status] = object{
			"description": strings.Join(slices.Compact(names), ", "),
			"content":     object{answer.MediaProblem: object{"schema": reference("Problem")}},
		}
	}
	return out
}

// parameters returns the parameters of a route: those of its path, its query and its headers.
func (r Route) parameters() []object {
	var all []object
	for part := range strings.SplitSeq(r.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			all = append(all, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	for in, some := range map[string][]Parameter{"query": r.Query, "header": r.Header} {
		for _, p := range some {
			all = append(all, object{"name": p.Name, "in": in, "description": p.About, "schema": p.schema()})
		}
	}
	slices.SortStableFunc(all, func(a, b object) int { return strings.Compare(fmt.Sprint(b["in"]), fmt.Sprint(a["in"])) })
	return all
}

func (p Parameter) schema() object {
	s := object{"type": p.Type}
	if p.Maximum > 0 {
		maps.Copy(s, object{"minimum": 1, "maximum": p.Maximum})
	}
	if p.Many {
		return object{"type": "array", "items": s}
	}
	return s
}

// schemaOf refers to the schema of a body.
func schemaOf(body any, schemas object) (object, error) {
	t := reflect.TypeOf(body)
	if t.Kind() == reflect.Map {
		return object{"type": "object"}, nil
	}
	if schemas[t.Name()] == nil {
		return nil, fmt.Errorf("proto-schemas/api has no schema of %s", t.Name())
	}
	return reference(t.Name()), nil
}

func reference(name string) object { return object{"$ref": "#/components/schemas/" + name} }
