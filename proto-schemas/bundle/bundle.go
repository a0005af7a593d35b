// Package bundle holds the JSON Schemas (2020-12) of the contract: one bundle for each
// dialect, one for the canonical events, and one for the bodies of the HTTP API. They are packed: as texts they make a hundredth of a
// binary. A program that also refers to the variable Schema of a dialect's package has that bundle twice.
package bundle

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// packed has the bundles as NAME.json.gz. They are generated with those of the dialects' packages.
//
//go:embed packed/*.json.gz
var packed embed.FS

// Bundle is the JSON Schema of all messages of a dialect. A valid frame matches its root, and the definition of its
// message: #/$defs/NAME.
type Bundle struct {
	Name string // of the dialect
	ID   string // the schema's $id
}

// All returns the bundles of the dialects and of the events, sorted by name.
func All() []Bundle {
	var all []Bundle
	for _, name := range []string{"agui", "asp", "event", "myagent", "orbit", "team"} {
		all = append(all, Bundle{name, ID(name)})
	}
	return all
}

// JSON returns the text of the schema. It unpacks it anew each time.
func (b Bundle) JSON() string { return unpack(b.Name) }

// API returns the bundle of the bodies of the HTTP API: #/$defs/NAME for each Go type. It unpacks it anew each time.
func API() string { return unpack("api") }

// unpack panics if the binary has no such bundle.
func unpack(name string) string {
	f, err := packed.Open("packed/" + name + ".json.gz")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(r)
	}
	if err != nil {
		panic(fmt.Sprintf("unpack the bundle %s: %v", name, err))
	}
	return string(text)
}

// ID returns the $id of a dialect's bundle. The number grows when a document that was valid becomes invalid.
func ID(dialect string) string { return "urn:waggle:schema:" + dialect + ":1" }

// Messages returns the names of the definitions that a group of a bundle accepts, such as in, out and client.in; the
// empty name selects the root.
func Messages(schema, group string) ([]string, error) {
	type anyOf struct {
		AnyOf []struct {
			Ref string `json:"$ref"`
		} `json:"anyOf"`
	}
	var doc struct {
		anyOf
		Defs map[string]anyOf `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(schema), &doc); err != nil {
		return nil, fmt.Errorf("read a bundle: %w", err)
	}
	of := doc.anyOf
	if group != "" {
		of = doc.Defs[group]
	}
	var names []string
	for _, a := range of.AnyOf {
		name := strings.TrimPrefix(a.Ref, "#/$defs/")
		if _, ok := doc.Defs[name]; !ok {
			return nil, fmt.Errorf("read a bundle: %s has no definition", a.Ref)
		}
		names = append(names, name)
	}
	return names, nil
}
