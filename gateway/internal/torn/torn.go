// Package torn reads the members of a JSON object of which only the first and the last
// bytes are there.
package torn

import (
	"bytes"
	"encoding/json"
)

const (
	// maxText bounds the values that are read, as written: ids, names and words are
	// shorter.
	maxText = 1 << 10
	// maxDepth bounds how deep values may be nested; a deeper value ends the reading.
	maxDepth = 64
)

// Members are the texts of an object by their names.
type Members = map[string]json.RawMessage

// Read returns the texts at the top of an object, and those of its member inner, as far as
// the object's first and last bytes show them: an object of which the last bytes show the
// end alone is inner, if inner is open where the first bytes end. A name that comes twice
// has no value. The bytes between may be anything: Read does not check the object.
func Read(head, tail []byte, inner string) (top, within Members) {
	first, _ := ahead(json.NewDecoder(bytes.NewReader(head)), maxDepth)
	back := backwards{tail}
	last, _ := back.value(maxDepth)
	if !first.object {
		first = node{}
	}
	open := false
	if n := len(first.members); n > 0 {
		m := first.members[n-1]
		open = m.object && m.cut && m.name == inner
	}
	all, deep, inners := first.members, []member(nil), 0
	if last.object {
		all = append(all, last.members...)
	}
	for _, m := range all {
		switch {
		case m.named && m.name == inner:
			inners++
			deep = append(deep, m.members...)
		case !m.named && m.object && open:
			deep = append(deep, m.members...)
		}
	}
	if inners > 1 {
		deep = nil
	}
	return texts(all), texts(deep)
}

// texts returns the members that are texts and come once.
func texts(all []member) Members {
	out, times := Members{}, map[string]int{}
	for _, m := range all {
		if !m.named {
			continue
		}
		times[m.name]++
		if len(m.text) > 0 && len(m.text) <= maxText {
			out[m.name] = m.text
		}
	}
	for name, n := range times {
		if n > 1 {
			delete(out, name)
		}
	}
	return out
}

// node is a value, or the part of it that is there.
type node struct {
	object  bool
	cut     bool            // a part is missing
	text    json.RawMessage // of a text that is whole
	members []member        // of an object, or of a list
}

// member is a member of an object or, without a name, of a list. A member of which the
// end alone is known has no name.
type member struct {
	node
	name  string
	named bool
}

// ahead reads a value from its beginning, and reports whether it is whole.
func ahead(d *json.Decoder, depth int) (v node, whole bool) {
	defer func() { v.cut = !whole }()
	t, err := d.Token()
	if err != nil || depth == 0 {
		return v, false
	}
	switch t := t.(type) {
	case string:
		v.text, err = json.Marshal(t)
		return v, err == nil
	case json.Delim:
		v.object = t == '{'
		for d.More() {
			var m member
			if v.object {
				name, err := d.Token()
				if err != nil {
					return v, false
				}
				m.name, m.named = name.(string)
			}
			m.node, whole = ahead(d, depth-1)
			if v.members = append(v.members, m); !whole {
				return v, false
			}
		}
		_, err = d.Token()
		return v, err == nil
	}
	return v, true
}

// backwards reads values from their ends. At the end of an object no text is open, and the
// quotes within a text have an odd number of backslashes before them: so every token
// before can be told.
type backwards struct{ rest []byte }

// take takes a character, with the white space behind it.
func (b *backwards) take(c byte) bool {
	b.rest = bytes.TrimRight(b.rest, " \t\r\n")
	n := len(b.rest)
	if n == 0 || b.rest[n-1] != c {
		return false
	}
	b.rest = b.rest[:n-1]
	return true
}

// value reads a value, and reports whether it is whole.
func (b *backwards) value(depth int) (v node, whole bool) {
	defer func() { v.cut = !whole }()
	switch {
	case depth == 0:
		return v, false
	case b.take('}'):
		v.object = true
		v.members, whole = b.members('{', depth-1)
		return v, whole
	case b.take(']'):
		v.members, whole = b.members('[', depth-1)
		return v, whole
	case b.take('"'):
		v.text, whole = b.text()
		return v, whole
	}
	n := len(bytes.TrimRight(b.rest, "+-.0123456789Eaeflnrstu"))
	whole = 0 < n && n < len(b.rest) // the bytes before it tell that it is
	b.rest = b.rest[:n]
	return v, whole
}

// members reads what an object or a list has, the last one first, up to what opens it.
func (b *backwards) members(opening byte, depth int) (all []member, whole bool) {
	if b.take(opening) {
		return nil, true
	}
	for {
		var m member
		m.node, whole = b.value(depth)
		if whole && opening == '{' {
			m.name, m.named = b.name()
			whole = m.named
		}
		all = append(all, m)
		switch {
		case !whole:
			return all, false
		case b.take(opening):
			return all, true
		case !b.take(','):
			return all, false
		}
	}
}

// name reads the name of a member, and the colon behind it.
func (b *backwards) name() (name string, ok bool) {
	if !b.take(':') || !b.take('"') {
		return "", false
	}
	raw, ok := b.text()
	return name, ok && json.Unmarshal(raw, &name) == nil
}

// text reads a text whose last quote has been read.
func (b *backwards) text() (raw json.RawMessage, ok bool) {
	for i := len(b.rest) - 1; i >= 0; i-- {
		if b.rest[i] != '"' {
			continue
		}
		before := len(bytes.TrimRight(b.rest[:i], `\`))
		if before == 0 {
			return nil, false // more backslashes may be missing
		}
		if (i-before)%2 == 0 {
			raw = append(append(raw, b.rest[i:]...), '"')
			b.rest = b.rest[:i]
			return raw, json.Valid(raw)
		}
	}
	return nil, false
}
