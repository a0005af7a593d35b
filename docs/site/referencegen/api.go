package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// document is the part of an OpenAPI document that the pages show.
type document struct {
	Tags []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tags"`
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	method, path string
	Summary      string      `json:"summary"`
	Description  string      `json:"description"`
	Tags         []string    `json:"tags"`
	Parameters   []parameter `json:"parameters"`
	RequestBody  *struct {
		Content map[string]media `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Description string           `json:"description"`
		Content     map[string]media `json:"content"`
	} `json:"responses"`
	Samples []struct {
		Source string `json:"source"`
	} `json:"x-codeSamples"`
}

type parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Schema      schema `json:"schema"`
}

type media struct {
	Schema  schema          `json:"schema"`
	Example json.RawMessage `json:"example"`
}

type schema struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"`
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Items       *schema           `json:"items"`
	Enum        []any             `json:"enum"`
	OneOf       []schema          `json:"oneOf"`
	Additional  any               `json:"additionalProperties"`
}

var methods = []string{"get", "post", "put", "patch", "delete"}

const openAPI = "docs/openapi.json"

// writeAPI writes a page for each tag of the document.
func writeAPI(root string) error {
	raw, err := os.ReadFile(filepath.Join(root, openAPI)) //nolint:gosec // a file of the repository
	if err != nil {
		return err
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("%s: %w", openAPI, err)
	}
	for _, tag := range d.Tags {
		operations, err := d.operations(tag.Name)
		if err != nil {
			return err
		}
		var out strings.Builder
		_, _ = fmt.Fprintf(&out, "# HTTP: %s\n\n%s\n\n| Request | Does |\n|---|---|\n", tag.Name, cell(tag.Description))
		for _, o := range operations {
			_, _ = fmt.Fprintf(&out, "| [`%s %s`](#%s) | %s |\n", strings.ToUpper(o.method), o.path, slug(o.heading()), cell(o.Summary))
		}
		for _, o := range operations {
			d.operation(&out, o)
		}
		if err := write(root, "http/"+tag.Name+".md", openAPI, out.String()); err != nil {
			return err
		}
	}
	return nil
}

func (d document) operations(tag string) ([]operation, error) {
	var out []operation
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range methods {
			raw, ok := d.Paths[path][method]
			if !ok {
				continue
			}
			o := operation{method: method, path: path}
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			if slices.Contains(o.Tags, tag) {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

func (o operation) heading() string {
	return "`" + strings.ToUpper(o.method) + " " + strings.TrimPrefix(o.path, "/api/v1") + "`"
}

func (d document) operation(out *strings.Builder, o operation) {
	_, _ = fmt.Fprintf(out, "\n## %s\n\n%s\n", o.heading(), escaped(o.Summary))
	if o.Description != "" {
		_, _ = fmt.Fprintf(out, "\n%s\n", escaped(o.Description))
	}
	if len(o.Samples) > 0 {
		_, _ = fmt.Fprintf(out, "\n```sh\n%s\n```\n", o.Samples[0].Source)
	}
	if len(o.Parameters) > 0 {
		out.WriteString("\n| Parameter | In | Type | Meaning |\n|---|---|---|---|\n")
		for _, p := range o.Parameters {
			_, _ = fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", p.Name, p.In, d.kind(p.Schema), cell(p.Description))
		}
	}
	if o.RequestBody != nil {
		for _, kind := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
			m := o.RequestBody.Content[kind]
			_, _ = fmt.Fprintf(out, "\n**Body**, `%s`\n", kind)
			d.fields(out, m.Schema)
			example(out, m.Example)
		}
	}
	d.responses(out, o)
}

func (d document) responses(out *strings.Builder, o operation) {
	var faults []string
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		if _, problem := r.Content["application/problem+json"]; problem {
			for code := range strings.SplitSeq(r.Description, ", ") {
				faults = append(faults, fmt.Sprintf("`%s` (%s)", code, status))
			}
			continue
		}
		_, _ = fmt.Fprintf(out, "\n**%s** %s\n", status, escaped(r.Description))
		for _, kind := range slices.Sorted(maps.Keys(r.Content)) {
			if strings.HasSuffix(kind, "json") {
				d.fields(out, r.Content[kind].Schema)
			}
			example(out, r.Content[kind].Example)
		}
	}
	if len(faults) > 0 {
		_, _ = fmt.Fprintf(out, "\n[Errors](../errors.md): %s\n", strings.Join(faults, ", "))
	}
}

// fields writes the members of an object, and those of the objects in its lists.
func (d document) fields(out *strings.Builder, s schema) {
	s = d.resolved(s)
	if len(s.Properties) == 0 {
		return
	}
	out.WriteString("\n| Member | Type | Meaning |\n|---|---|---|\n")
	d.rows(out, "", s, 0)
}

// deepest bounds the members of members that a table shows.
const deepest = 2

func (d document) rows(out *strings.Builder, prefix string, s schema, depth int) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		kind := d.kind(p)
		if slices.Contains(s.Required, name) {
			kind += ", always"
		}
		full := d.resolved(p)
		meaning := p.Description
		if meaning == "" {
			meaning = full.Description
		}
		_, _ = fmt.Fprintf(out, "| `%s%s` | %s | %s |\n", prefix, name, kind, cell(meaning))
		if depth+1 >= deepest {
			continue
		}
		if full.Items != nil {
			d.rows(out, prefix+name+"[].", d.resolved(*full.Items), depth+1)
		} else {
			d.rows(out, prefix+name+".", full, depth+1)
		}
	}
}

func (d document) resolved(s schema) schema {
	for s.Ref != "" {
		s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

func (d document) kind(s schema) string {
	s = d.resolved(s)
	switch {
	case s.Items != nil:
		return "list of " + d.kind(*s.Items)
	case len(s.Enum) > 0:
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = fmt.Sprintf("`%v`", v)
		}
		return strings.Join(values, ", ")
	}
	switch t := s.Type.(type) {
	case string:
		if s.Format != "" {
			return s.Format
		}
		return t
	case []any:
		values := make([]string, len(t))
		for i, v := range t {
			values[i] = fmt.Sprint(v)
		}
		return strings.Join(values, " or ")
	}
	if len(s.Properties) > 0 {
		return "object"
	}
	return "any"
}

func example(out *strings.Builder, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") == nil {
		_, _ = fmt.Fprintf(out, "\n```json\n%s\n```\n", b.String())
	}
}

// cell returns a text for a cell of a table.
func cell(text string) string {
	return escaped(strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|"))
}
