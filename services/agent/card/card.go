// Package card is what an agent's worker says of itself in the directory.
package card

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// General is the capability of agents that may be given anything.
const General = "general"

// Card is the data of an agent's entry in the directory.
type Card struct {
	Model        string   `json:"model"`
	Capabilities []string `json:"capabilities"` // a task that names one may be given to this agent
}

// Data returns the card as an entry holds it.
func (c Card) Data() (json.RawMessage, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode an agent's card: %w", err)
	}
	return raw, nil
}

// Read returns the card of a member. One that cannot be read says nothing, and is no
// reason to overlook the others.
func Read(m directory.Member) (Card, bool) {
	var c Card
	if m.Name != command.Agent || json.Unmarshal(m.Data, &c) != nil {
		return Card{}, false
	}
	return c, true
}

// Capabilities returns what the agents that are there can do, sorted, each once.
func Capabilities(d *directory.Directory) []string {
	var out []string
	for _, m := range d.Members(directory.WhatService, command.Agent) {
		if c, ok := Read(m); ok {
			out = append(out, c.Capabilities...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
