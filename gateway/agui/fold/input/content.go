package input

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
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Bounds of the inline data of a message, decoded.
const (
	maxData  = 128 << 10
	maxFacts = 64 << 10 // of texts, which a command has room for
	maxParts = 64
	maxLabel = 255 // bytes of the name of a file
)

// Content is what a user's message says, or what a tool of the client has returned.
type Content struct {
	Text    string
	Images  []string     // addresses
	Files   []string     // addresses
	Facts   []event.Fact // inline files that are text
	Inline  []event.File // all inline files
	Skipped []string     // kinds of parts that the model cannot take

	size int // bytes of all inline files
	told int // bytes of facts
}

// ContentOf reads the content of a message: a text, or parts. field names the message in the error, which is a *fault.Fault.
func ContentOf(m *wire.Message, field string) (c Content, err error) {
	var s string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &s) == nil {
		return Content{Text: s}, nil
	}
	var parts []wire.Part
	if json.Unmarshal(m.Content, &parts) != nil || len(parts) > maxParts {
		return c, Wrong(field+".content", "a string or a list of at most 64 parts")
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
	c.Text = strings.Join(texts, "\n\n")
	return c, nil
}

// Empty reports whether a message says nothing. One with parts that the model cannot take says something all the same.
func (c *Content) Empty() bool {
	return strings.TrimSpace(c.Text) == "" && len(c.Images)+len(c.Files)+len(c.Inline)+len(c.Skipped) == 0
}

// Returned is the text of the result of a tool: the addresses and the texts that it has are a part of it.
func (c *Content) Returned() string {
	all := []string{c.Text}
	all = append(append(all, c.Images...), c.Files...)
	for _, f := range c.Facts {
		all = append(all, f.Value)
	}
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "\n\n")
}

// Pictures are the kinds of the inline files that only a model can be given.
func (c *Content) Pictures() (kinds []string) {
	for _, f := range c.Inline {
		if f.Picture() {
			kinds = append(kinds, f.Kind)
		}
	}
	return kinds
}

// add adds a part that is not text.
func (c *Content) add(field string, p wire.Part) error {
	switch s := p.Source; {
	case s != nil && s.Type == "url" && Web(s.Value) && p.Type == event.FileImage:
		c.Images = append(c.Images, s.Value)
	case s != nil && s.Type == "url" && Web(s.Value):
		c.Files = append(c.Files, s.Value)
	case s != nil && s.Type == "data":
		return c.bring(field, p)
	default:
		c.Skipped = append(c.Skipped, p.Type)
	}
	return nil
}

// bring adds inline data.
func (c *Content) bring(field string, p wire.Part) error {
	if _, _, err := mime.ParseMediaType(p.Source.MimeType); err != nil {
		return Wrong(field+".mimeType", "a media type, such as image/png")
	}
	if len(p.Source.Value) > base64.StdEncoding.EncodedLen(maxData) {
		return Wrong(field+".value", "at most 128 KiB of data in base64, with all other files of the message")
	}
	data, err := base64.StdEncoding.DecodeString(p.Source.Value)
	if err != nil || len(data) == 0 {
		return Wrong(field+".value", "data in base64")
	}
	if c.size += len(data); c.size > maxData {
		return Wrong(field+".value", "at most 128 KiB of data in base64, with all other files of the message")
	}
	contents, err := plainjson.Marshal(p.Source.Value)
	if err != nil {
		return Wrong(field+".value", "data in base64").Wrap(err)
	}
	f := event.File{Kind: p.Type, MediaType: p.Source.MimeType, Name: label(p.Label()), Size: len(data), Contents: contents}
	c.Inline = append(c.Inline, f)
	switch {
	case f.Text() && !utf8.Valid(data):
		return Wrong(field+".value", "text in UTF-8, as its mimeType says")
	case f.Text():
		if c.told += len(data); c.told > maxFacts {
			return Wrong(field+".value", "at most 64 KiB of text, with all other texts of the message")
		}
		about := fmt.Sprintf("file %d of the message (%s)", len(c.Inline), f.MediaType)
		if f.Name != "" {
			about = fmt.Sprintf("file %d of the message, %s (%s)", len(c.Inline), f.Name, f.MediaType)
		}
		c.Facts = append(c.Facts, event.Fact{Description: about, Value: string(data)})
	case !f.Picture():
		c.Skipped = append(c.Skipped, p.Type)
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

// Web reports whether an address is one of the web.
func Web(u string) bool {
	return strings.HasPrefix(u, "https://") || strings.HasPrefix(u, "http://")
}
