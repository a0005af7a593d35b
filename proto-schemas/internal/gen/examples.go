package gen

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
)

// examples collects the constraints that the examples of a protocol's description put on the Go types: the examples
// must be valid, too.
type examples struct {
	unsent  map[string]string // members of examples that are never sent, <message> <path>, with the reason
	skip    reflect.Type      // may have any members
	message string            // the message whose example is read

	absent map[string]bool     // Type.member: some example of the type lacks the member
	extra  map[string]*members // Type: members that only examples have
	used   map[string]bool     // of unsent
}

func newExamples(unsent map[string]string) *examples {
	return &examples{unsent: unsent, absent: map[string]bool{}, extra: map[string]*members{}, used: map[string]bool{}}
}

// readExample returns an example, nil if the description has none.
func readExample(files fs.FS, path string) (node, error) {
	raw, err := fs.ReadFile(files, path)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // Not every message has one.
	}
	var example node
	if err := json.Unmarshal(raw, &example); err != nil {
		return nil, fmt.Errorf("example %s: %w", path, err)
	}
	return example, nil
}

// read records the members of an example of a type at a path of the message.
func (e *examples) read(t reflect.Type, path string, example any) error {
	switch t.Kind() {
	case reflect.Pointer:
		return e.read(t.Elem(), path, example)
	case reflect.Slice:
		return e.read(t.Elem(), path, first(example))
	case reflect.Struct:
		if o, ok := example.(node); ok && t != e.skip {
			return e.object(t, path, o)
		}
	}
	return nil
}

func (e *examples) object(t reflect.Type, path string, example node) error {
	known := map[string]bool{}
	for _, f := range flat(t) {
		name, _ := jsonName(f.StructField)
		known[name] = true
		if _, there := example[name]; !there {
			e.absent[f.of.Name()+"."+name] = true
		} else if err := e.read(f.Type, path+"."+name, example[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(example)) {
		if known[name] {
			continue
		}
		member := e.message + " " + path + "." + name
		reason := e.unsent[member]
		if reason == "" {
			return fmt.Errorf("example of %s: no reason is given why %s.%s is never sent", e.message, path, name)
		}
		e.used[member] = true
		if e.extra[t.Name()] == nil {
			e.extra[t.Name()] = newMembers()
		}
		e.extra[t.Name()].set(name, node{"type": jsonKind(example[name]), "description": "Never sent by this version: " + reason + "."})
	}
	return nil
}

// finish adapts a type to its examples.
func (e *examples) finish(t reflect.Type, s node, props *members) {
	required, _ := s["required"].([]string)
	var needed []string
	for _, name := range required {
		if !e.absent[t.Name()+"."+name] {
			needed = append(needed, name)
		}
	}
	if delete(s, "required"); needed != nil {
		s["required"] = needed
	}
	if extra := e.extra[t.Name()]; extra != nil {
		for _, name := range extra.names {
			props.set(name, extra.of[name])
		}
	}
}

// stricter returns the constraints of a message on a type beyond the type's definition, which must suit all messages;
// nil = none. The example is that of the message.
func (e *examples) stricter(t reflect.Type, example any) node {
	switch t.Kind() {
	case reflect.Pointer:
		return e.stricter(t.Elem(), example)
	case reflect.Slice:
		if inner := e.stricter(t.Elem(), first(example)); inner != nil {
			return node{"items": inner}
		}
	case reflect.Struct:
		if t != e.skip {
			return e.narrow(t, example)
		}
	}
	return nil
}

func (e *examples) narrow(t reflect.Type, example any) node {
	o, shown := example.(node)
	var required []string
	props := node{}
	if extra := e.extra[t.Name()]; extra != nil {
		for _, name := range extra.names {
			if _, ok := o[name]; !ok {
				props[name] = false
			}
		}
	}
	for _, f := range flat(t) {
		name, optional := jsonName(f.StructField)
		if _, there := o[name]; !optional && e.absent[f.of.Name()+"."+name] && (there || !shown) {
			required = append(required, name)
		}
		if inner := e.stricter(f.Type, o[name]); inner != nil {
			props[name] = inner
		}
	}
	s := node{}
	if required != nil {
		s["required"] = required
	}
	if len(props) > 0 {
		s["properties"] = props
	}
	if len(s) == 0 {
		return nil
	}
	return s
}

// first returns the first element of an example that is a list.
func first(example any) any {
	if list, ok := example.([]any); ok && len(list) > 0 {
		return list[0]
	}
	return nil
}

// field is a field with the struct that declares it.
type field struct {
	reflect.StructField
	of reflect.Type
}

// flat returns the fields that a struct has in JSON, those of embedded ones included.
func flat(t reflect.Type) []field {
	var out []field
	for f := range t.Fields() {
		if name, _ := jsonName(f); f.Anonymous {
			out = append(out, flat(f.Type)...)
		} else if name != "-" {
			out = append(out, field{f, t})
		}
	}
	return out
}

// unread returns an error if a member in unsent does not occur in an example, or is sent.
func (e *examples) unread() error {
	for member := range e.unsent {
		if !e.used[member] {
			return fmt.Errorf("%s is in no example, or is sent", member)
		}
	}
	return nil
}

// jsonKind returns the type of an example's value.
func jsonKind(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
