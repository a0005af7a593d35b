package fold

import (
	"slices"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/content"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// partsOf returns text and stored files as parts.
func partsOf(text string, urls []wire.Part, files []event.File) []wire.Part {
	var parts []wire.Part
	if text != "" {
		parts = append(parts, wire.Part{Type: "text", Text: text})
	}
	parts = append(parts, urls...)
	for _, f := range files {
		p := wire.Part{Type: f.Kind, Source: &wire.Source{Type: "url", Value: content.FileURL(f), MimeType: f.MediaType}}
		if !slices.Contains(wire.MediaParts, f.Kind) {
			p.Type = event.FileDocument
		}
		if f.Name != "" {
			p.Metadata = raw(map[string]string{"filename": f.Name})
		}
		parts = append(parts, p)
	}
	return parts
}

// userMessage returns a message of a user as its client wrote it.
func (v Variant) userMessage(d event.MessageReceivedData) wire.Message {
	m := wire.Message{ID: first(input.ExtraOf(d.Extra).MessageID, d.MessageID), Role: wire.RoleUser, Content: quote(d.Content)}
	var parts []wire.Part
	for _, u := range d.ImageURLs {
		if content.Web(u) {
			parts = append(parts, wire.Part{Type: event.FileImage, Source: &wire.Source{Type: "url", Value: u}})
		}
	}
	for _, f := range d.ContextFiles {
		switch {
		case content.Web(f):
			parts = append(parts, wire.Part{Type: event.FileDocument, Source: &wire.Source{Type: "url", Value: f}})
		case v.files:
			parts = append(parts, wire.Part{Type: event.FileDocument, Source: &wire.Source{Type: "file", Value: f}})
		}
	}
	if len(parts)+len(d.Files) > 0 {
		m.Content = raw(partsOf(d.Content, parts, d.Files))
	}
	return m
}

// inputOf is how other viewers get the user's words.
func (v Variant) inputOf(d event.MessageReceivedData) *wire.Input {
	return &wire.Input{Messages: []wire.Message{v.userMessage(d)}, Tools: []wire.Tool{}, Context: []wire.Context{}}
}
