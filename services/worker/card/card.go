// Package card encodes a worker's entry in the directory: its models, their providers and its
// capabilities.
package card

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/services/model"
)

// General is the capability of workers that may be given any step.
const General = "general"

// Card is the data of a worker's entry in the directory.
type Card struct {
	Model        string   `json:"model"`
	Providers    []string `json:"providers,omitempty"` // whose models it can ask when a member of a team has one of its own
	Trouble      string   `json:"trouble,omitempty"`   // why the provider of the model cannot be used
	Capabilities []string `json:"capabilities"`        // a step or a task that names one may be given to this worker

	LeftOut []LeftOut `json:"left_out,omitempty"` // tools that its model was not offered lately, at most 20
}

// LeftOut is a tool that the provider of a model does not take.
type LeftOut struct {
	Tool string `json:"tool"` // empty: all tools
	Why  string `json:"why"`
}

// Data returns the card as an entry holds it.
func (c Card) Data() (json.RawMessage, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode a worker's card: %w", err)
	}
	return raw, nil
}

// Read returns the card of a member. ok is false for an unreadable one, which callers skip.
func Read(m directory.Member) (Card, bool) {
	var c Card
	if m.Name != command.Worker || json.Unmarshal(m.Data, &c) != nil {
		return Card{}, false
	}
	return c, true
}

// Serves reports whether a live worker can ask the named model, and whether any worker is live.
func Serves(d *directory.Directory, spec string) (serves, there bool) {
	for _, m := range d.Members(directory.WhatService, command.Worker) {
		if c, ok := Read(m); ok {
			there = true
			serves = serves || model.Serves(c.Model, c.Providers, spec)
		}
	}
	return serves, there
}

// Model returns the model that all listed workers have, empty if they differ or none is listed.
func Model(d *directory.Directory) (name string) {
	for _, m := range d.Members(directory.WhatService, command.Worker) {
		c, ok := Read(m)
		if !ok || name != "" && c.Model != name {
			return ""
		}
		name = c.Model
	}
	return name
}

// Providers returns the model providers that the listed workers can call, sorted, each once.
func Providers(d *directory.Directory) []string {
	var out []string
	for _, m := range d.Members(directory.WhatService, command.Worker) {
		if c, ok := Read(m); ok {
			out = append(out, c.Providers...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Capabilities returns the capabilities of the listed workers, sorted, each once.
func Capabilities(d *directory.Directory) []string {
	var out []string
	for _, m := range d.Members(directory.WhatService, command.Worker) {
		if c, ok := Read(m); ok {
			out = append(out, c.Capabilities...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
