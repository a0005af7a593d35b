package agui

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Bounds of the inline data of a message, decoded.
const (
	maxData  = 128 << 10
	maxFacts = 64 << 10 // of texts, which a command has room for
	maxParts = 64
	maxLabel = 255 // bytes of the name of a file
)

// content is what a user's message says, or what a tool of the client has returned.
type content struct {
	text    string
	images  []string
	files   []string
	facts   []event.Fact // inline files that are text
	inline  []event.File // all inline files
	size    int          // of them
	told    int          // bytes of facts
	skipped []string     // kinds of parts that the model cannot take
}

// contentOf reads the content of a message: a text, or parts. field names the message in errors.
func contentOf(m *wire.Message, field string) (c content, err error) {
	var s string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &s) == nil {
		return content{text: s}, nil
	}
	var parts []wire.Part
	if json.Unmarshal(m.Content, &parts) != nil || len(parts) > maxParts {
		return c, wrong(field+".content", "a text or a list of at most 64 parts")
	}
	var texts []string
	for i, p := range parts {
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case wire.PartBinary:
			err = c.add(fmt.Sprintf("%s.content[%d]", field, i), p.Sourced())
		default:
			err = c.add(fmt.Sprintf("%s.content[%d].source", field, i), p)
		}
		if err != nil {
			return c, err
		}
	}
	c.text = strings.Join(texts, "\n\n")
	return c, nil
}

// empty reports whether a message says nothing. One with parts that the model cannot take says something all the same.
func (c *content) empty() bool {
	return strings.TrimSpace(c.text) == "" && len(c.images)+len(c.files)+len(c.inline)+len(c.skipped) == 0
}

// returned is the text of the result of a tool: the addresses and the texts that it has are a part of it.
func (c *content) returned() string {
	all := []string{c.text}
	all = append(append(all, c.images...), c.files...)
	for _, f := range c.facts {
		all = append(all, f.Value)
	}
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "\n\n")
}

// pictures are the kinds of the inline files that only a model can be given.
func (c *content) pictures() (kinds []string) {
	for _, f := range c.inline {
		if f.Picture() {
			kinds = append(kinds, f.Kind)
		}
	}
	return kinds
}

// add adds a part that is not text.
func (c *content) add(field string, p wire.Part) error {
	switch s := p.Source; {
	case s != nil && s.Type == "url" && web(s.Value) && p.Type == event.FileImage:
		c.images = append(c.images, s.Value)
	case s != nil && s.Type == "url" && web(s.Value):
		c.files = append(c.files, s.Value)
	case s != nil && s.Type == "data":
		return c.bring(field, p)
	default:
		c.skipped = append(c.skipped, p.Type)
	}
	return nil
}

// bring adds inline data.
func (c *content) bring(field string, p wire.Part) error {
	if _, _, err := mime.ParseMediaType(p.Source.MimeType); err != nil {
		return wrong(field+".mimeType", "a media type, such as image/png")
	}
	if len(p.Source.Value) > base64.StdEncoding.EncodedLen(maxData) {
		return wrong(field+".value", "at most 128 KiB of data in base64, with all other files of the message")
	}
	data, err := base64.StdEncoding.DecodeString(p.Source.Value)
	if err != nil || len(data) == 0 {
		return wrong(field+".value", "data in base64")
	}
	if c.size += len(data); c.size > maxData {
		return wrong(field+".value", "at most 128 KiB of data in base64, with all other files of the message")
	}
	f := event.File{Kind: p.Type, MediaType: p.Source.MimeType, Name: label(p.Label()), Size: len(data), Contents: quote(p.Source.Value)}
	c.inline = append(c.inline, f)
	switch {
	case f.Text() && !utf8.Valid(data):
		return wrong(field+".value", "text in UTF-8, as its mimeType says")
	case f.Text():
		if c.told += len(data); c.told > maxFacts {
			return wrong(field+".value", "at most 64 KiB of text, with all other texts of the message")
		}
		about := fmt.Sprintf("file %d of the message (%s)", len(c.inline), f.MediaType)
		if f.Name != "" {
			about = fmt.Sprintf("file %d of the message, %s (%s)", len(c.inline), f.Name, f.MediaType)
		}
		c.facts = append(c.facts, event.Fact{Description: about, Value: string(data)})
	case !f.Picture():
		c.skipped = append(c.skipped, p.Type)
	}
	return nil
}

// label returns the name of a file in one line.
func label(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	if len(name) > maxLabel {
		name = strings.ToValidUTF8(name[:maxLabel], "")
	}
	return name
}
