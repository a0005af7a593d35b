package gen

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// schema is a JSON Schema with its keywords in the order in which people read them.
type schema struct {
	Dialect     string      `json:"$schema,omitempty"`
	ID          string      `json:"$id,omitempty"`
	Anchor      string      `json:"$anchor,omitempty"`
	Ref         string      `json:"$ref,omitempty"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description,omitempty"`
	Type        string      `json:"type,omitempty"`
	Const       string      `json:"const,omitempty"`
	Enum        []string    `json:"enum,omitempty"`
	Format      string      `json:"format,omitempty"`
	Pattern     string      `json:"pattern,omitempty"`
	Minimum     *int        `json:"minimum,omitempty"`
	Items       *schema     `json:"items,omitempty"`
	Properties  *properties `json:"properties,omitempty"`
	Required    []string    `json:"required,omitempty"`
}

// properties are named schemas in a fixed order.
type properties struct {
	names   []string
	schemas map[string]*schema
}

func newProperties() *properties { return &properties{schemas: map[string]*schema{}} }

func (p *properties) set(name string, s *schema) {
	if _, ok := p.schemas[name]; !ok {
		p.names = append(p.names, name)
	}
	p.schemas[name] = s
}

// MarshalJSON implements json.Marshaler.
func (p *properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range p.names {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := marshal(p.schemas[name])
		if err != nil {
			return nil, fmt.Errorf("property %s: %w", name, err)
		}
		fmt.Fprintf(&b, "%q:%s", name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode returns the schema as an indented file.
func (s *schema) encode() ([]byte, error) {
	raw, err := marshal(s)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("indent: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// marshal is json.Marshal without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
