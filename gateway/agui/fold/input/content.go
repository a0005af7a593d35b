package input

import (
	"encoding/json"
	"fmt"
	"strings"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/content"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
)

// maxParts bounds the parts of a message.
const maxParts = 64

// ContentOf reads the content of a message: a text, or parts. field names the message in the error, which is a *fault.Fault.
func ContentOf(m *wire.Message, field string) (c content.Content, err error) {
	var s string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &s) == nil {
		return content.Content{Text: s}, nil
	}
	var parts []wire.Part
	if json.Unmarshal(m.Content, &parts) != nil || len(parts) > maxParts {
		return c, strict.Wrong(field+".content", "a string or a list of at most 64 parts")
	}
	var texts []string
	for i, p := range parts {
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case wire.PartBinary:
			err = add(&c, fmt.Sprintf("%s.content[%d]", field, i), p.Sourced())
		default:
			err = add(&c, fmt.Sprintf("%s.content[%d].source", field, i), p)
		}
		if err != nil {
			return c, err
		}
	}
	c.Text = strings.Join(texts, "\n\n")
	return c, nil
}

// add adds a part that is not text.
func add(c *content.Content, field string, p wire.Part) error {
	switch s := p.Source; {
	case s != nil && s.Type == "url" && c.Link(p.Type, s.Value):
	case s != nil && s.Type == "data":
		in := content.Inline{Kind: p.Type, MediaType: s.MimeType, Name: p.Label(), Data: s.Value}
		return c.Bring(in, content.Fields{MediaType: field + ".mimeType", Data: field + ".value"})
	default:
		c.Skipped = append(c.Skipped, p.Type)
	}
	return nil
}
