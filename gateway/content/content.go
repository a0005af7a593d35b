// Package content reads what messages of clients bring along besides text: addresses, and inline files, whose sizes are bounded.
package content

import (
	"encoding/base64"
	"fmt"
	"mime"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Bounds of the inline data of a message, decoded.
const (
	maxData  = 128 << 10
	maxFacts = 64 << 10 // of texts, which a command has room for
	maxLabel = 255      // bytes of the name of a file
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

// Limits of what a message offers the model.
const (
	maxTools     = 64
	maxToolBytes = 64 << 10
	maxContext   = 32 << 10
)

// toolName is what models take as the name of a tool.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckTools returns why the tools of a client cannot be offered to a model. The error is a *fault.Fault.
func CheckTools(tools []event.ClientTool) error {
	bytes := 0
	for _, t := range tools {
		bytes += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	if len(tools) > maxTools || bytes > maxToolBytes {
		return strict.Wrong("tools", "at most 64 tools of 64 KiB together")
	}
	for i, t := range tools {
		if !toolName.MatchString(t.Name) {
			return strict.Wrong(fmt.Sprintf("tools[%d].name", i), "1 to 64 letters, digits, _ and -")
		}
	}
	return nil
}

// CheckContext returns why the model cannot be told the facts of a client. The error is a *fault.Fault.
func CheckContext(facts []event.Fact) error {
	bytes := 0
	for _, f := range facts {
		bytes += len(f.Description) + len(f.Value)
	}
	if bytes > maxContext {
		return strict.Wrong("context", "at most 32 KiB")
	}
	return nil
}

// KindOf returns the kind of a file with the media type.
func KindOf(media string) string {
	switch kind, _, _ := strings.Cut(media, "/"); kind {
	case event.FileImage, "audio", "video":
		return kind
	}
	return event.FileDocument
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

// Inline is a file in a message.
type Inline struct {
	Kind      string // image, audio, video, document
	MediaType string
	Name      string
	Data      string // in base64
}

// Fields name the members of a request with the media type and the data of a file, for errors.
type Fields struct{ MediaType, Data string }

// Link adds the address of a file, and reports whether it is one of the web.
func (c *Content) Link(kind, address string) bool {
	switch {
	case !Web(address):
		return false
	case kind == event.FileImage:
		c.Images = append(c.Images, address)
	default:
		c.Files = append(c.Files, address)
	}
	return true
}

// Bring adds a file. The error is a *fault.Fault.
func (c *Content) Bring(p Inline, at Fields) error {
	if _, _, err := mime.ParseMediaType(p.MediaType); err != nil {
		return strict.Wrong(at.MediaType, "a media type, such as image/png")
	}
	if len(p.Data) > base64.StdEncoding.EncodedLen(maxData) {
		return strict.Wrong(at.Data, "at most 128 KiB of data in base64, with all other files of the message")
	}
	data, err := base64.StdEncoding.DecodeString(p.Data)
	if err != nil || len(data) == 0 {
		return strict.Wrong(at.Data, "data in base64")
	}
	if c.size += len(data); c.size > maxData {
		return strict.Wrong(at.Data, "at most 128 KiB of data in base64, with all other files of the message")
	}
	contents, err := plainjson.Marshal(p.Data)
	if err != nil {
		return strict.Wrong(at.Data, "data in base64").Wrap(err)
	}
	f := event.File{Kind: p.Kind, MediaType: p.MediaType, Name: label(p.Name), Size: len(data), Contents: contents}
	c.Inline = append(c.Inline, f)
	switch {
	case f.Text() && !utf8.Valid(data):
		return strict.Wrong(at.Data, "text in UTF-8, as its mimeType says")
	case f.Text():
		if c.told += len(data); c.told > maxFacts {
			return strict.Wrong(at.Data, "at most 64 KiB of text, with all other texts of the message")
		}
		about := fmt.Sprintf("file %d of the message (%s)", len(c.Inline), f.MediaType)
		if f.Name != "" {
			about = fmt.Sprintf("file %d of the message, %s (%s)", len(c.Inline), f.Name, f.MediaType)
		}
		c.Facts = append(c.Facts, event.Fact{Description: about, Value: string(data)})
	case !f.Picture():
		c.Skipped = append(c.Skipped, p.Kind)
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

// FileURL is the address of a stored file of a session, relative to that of the gateway; empty for one of another log.
func FileURL(f event.File) string {
	kind, entity, _ := strings.Cut(f.Object.Log, ".")
	if kind != string(id.KindSession) {
		return ""
	}
	return "/api/v1/sessions/" + entity + "/files/" + f.Object.Digest
}

// ArtifactURL is the address of a file that an agent or a member has made, as it was then, relative to that of the gateway. It is empty
// if the file cannot be fetched.
func ArtifactURL(a event.Artifact) string {
	if a.Object == nil || a.URL != "" {
		return a.URL
	}
	kind, entity, _ := strings.Cut(a.Object.Log, ".")
	return "/api/v1/artifacts/" + kind + "/" + entity + "/" + a.ArtifactID + "?version=" + a.Object.Digest
}
