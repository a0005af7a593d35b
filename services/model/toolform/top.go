package toolform

import (
	"errors"
	"fmt"
	"strings"
)

var errNothing = errors.New("its schema accepts no object")

// top returns the form of the whole document.
func (b *builder) top() (node, error) {
	switch b.doc.(type) {
	case nil, bool, node:
	default:
		return nil, fmt.Errorf("its schema is not a schema but %s", kindOf(b.doc))
	}
	whole := b.rebuild()
	flat, ok := b.flatten(whole, nil)
	if !ok {
		if types := typesOf(members(whole)); len(types) > 0 {
			return nil, fmt.Errorf("its arguments are of type %s, not an object", strings.Join(types, ", "))
		}
		return nil, errNothing
	}
	top := flat.node()
	if b.dialect == Gemini {
		return b.reduced(top), nil
	}
	b.keep(top)
	return top, nil
}

// keep adds the definitions that a form refers to.
func (b *builder) keep(top node) {
	defs := node{}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				visit(e)
			}
		case node:
			if name, ok := target(v); ok && defs[name] == nil && b.defs[name] != nil {
				defs[name] = b.defs[name]
				visit(defs[name])
			}
			for _, e := range v {
				visit(e)
			}
		}
	}
	visit(top)
	if len(defs) > 0 {
		top["$defs"] = defs
	}
}
