package schema

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The keywords whose values hold schemas: one, a list, or a map of them. The value of items may be a list, too.
var (
	oneSchema = words("additionalItems additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems unevaluatedProperties")
	listed    = words("allOf anyOf oneOf prefixItems")
	mapped    = words("$defs definitions dependencies dependentSchemas patternProperties properties")
)

func words(s string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

const (
	// maxSchema bounds the schema of one tool. The largest schemas of widely used servers are below 20 KiB.
	maxSchema = 64 << 10
	// maxSchemas bounds the schemas in it: the compiler's work grows with their square.
	maxSchemas = 4096
	// maxNames bounds the schemas with an address of their own, and maxStrays the product of schemas and of references
	// beside the usual places: the compiler copies its tables for each. A whole OpenAPI document with a hundred components
	// has 100,000.
	maxNames, maxStrays = 30, 250_000
)

var errTooMany = fmt.Errorf("the schema has more than %d schemas in it, or too many references", maxSchemas)

// place is a schema within a document that is a JSON object.
type place struct {
	path   string // JSON pointer
	object map[string]any
	below  []edge
}

// edge leads from a place to one that it applies.
type edge struct {
	key string // the keyword
	to  *place
}

// survey is a walk over a document: every schema object in it, those that only references lead to included.
type survey struct {
	root    any
	places  []*place
	at      map[string]*place
	schemas int // schemas that are true or false included
	strays  int // references to other places than those of schemas
}

// surveyed walks over the document. It stops at the limit of schemas.
func surveyed(root any) *survey {
	s := &survey{root: root, at: make(map[string]*place)}
	s.walk(root, "")
	for i := 0; i < len(s.places); i++ { // walk appends places
		p := s.places[i]
		ref, ok := p.object["$ref"].(string)
		if !ok {
			continue
		}
		path, target, ok := s.resolve(ref)
		if !ok {
			continue
		}
		if s.at[path] == nil && isObject(target) {
			s.strays++
			s.walk(target, path)
		}
		if to := s.at[path]; to != nil {
			p.below = append(p.below, edge{"$ref", to})
		}
	}
	return s
}

func (s *survey) walk(v any, path string) *place {
	if s.schemas++; s.schemas > maxSchemas {
		return nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if p := s.at[path]; p != nil {
		return p
	}
	p := &place{path: path, object: object}
	s.places = append(s.places, p)
	s.at[path] = p
	for _, key := range slices.Sorted(maps.Keys(object)) {
		for name, sub := range subschemas(key, object[key]) {
			if to := s.walk(sub, path+name); to != nil {
				p.below = append(p.below, edge{key, to})
			}
		}
	}
	return p
}

// subschemas yields the schemas in the value of a keyword, with their paths from the object.
func subschemas(key string, value any) func(yield func(string, any) bool) {
	return func(yield func(string, any) bool) {
		switch v := value.(type) {
		case map[string]any:
			if oneSchema[key] {
				yield("/"+key, v)
				return
			}
			if !mapped[key] {
				return
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if !yield("/"+key+"/"+escape(name), v[name]) {
					return
				}
			}
		case []any:
			if !listed[key] && key != "items" {
				return
			}
			for i, e := range v {
				if !yield("/"+key+"/"+strconv.Itoa(i), e) {
					return
				}
			}
		}
	}
}

// resolve follows a reference within the document that is # or a JSON pointer. It returns the path of the target and its
// value; ok is false if the target is missing or cannot be a schema.
func (s *survey) resolve(ref string) (path string, target any, ok bool) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local || fragment != "" && fragment[0] != '/' {
		return "", nil, false
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return "", nil, false
	}
	tokens := tokensOf(fragment)
	target, ok = lookup(s.root, tokens)
	if _, isBool := target.(bool); !ok || !isBool && !isObject(target) {
		return "", nil, false
	}
	return pointer(tokens), target, true
}

// bounded returns an error for a document that takes too long to compile.
func (s *survey) bounded() error {
	named := 0
	for _, p := range s.places {
		if p.object["$id"] != nil || p.object["id"] != nil {
			named++
		}
	}
	if s.schemas > maxSchemas || named > maxNames || s.schemas*s.strays > maxStrays {
		return errTooMany
	}
	return nil
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// tokensOf splits a JSON pointer.
func tokensOf(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range tokens {
		tokens[i] = unescaper.Replace(t)
	}
	return tokens
}

// lookup returns the value at a place of a document.
func lookup(v any, tokens []string) (any, bool) {
	for _, t := range tokens {
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[t]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

func escape(token string) string { return escaper.Replace(token) }

// pointer returns the JSON pointer (RFC 6901) of a location.
func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(escape(p))
	}
	return b.String()
}
