package event

import (
	"encoding/json"
	"mime"
	"slices"
	"strings"
)

// Kinds of files.
const (
	FileImage    = "image"
	FileDocument = "document"
)

// File is a file that a client brings along with a message, or that comes with the result of a tool. Its contents are an object
// of the log: a JSON string in base64.
type File struct {
	Kind      string    `json:"kind"`       // image, audio, video, document
	MediaType string    `json:"media_type"` // as the client, or the tool, says it
	Name      string    `json:"name,omitempty"`
	Size      int       `json:"size"` // of the contents in bytes
	Object    ObjectRef `json:"object"`

	Contents json.RawMessage `json:"-"` // of a file that is not stored yet
}

// pictures are the media types of images that models take.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// Pictures returns the media types of images that models take.
func Pictures() []string { return slices.Clone(pictures) }

// Picture reports whether models that see can see the file.
func (f File) Picture() bool { return slices.Contains(pictures, f.Media()) }

// Text reports whether the file is text.
func (f File) Text() bool {
	m := f.Media()
	return strings.HasPrefix(m, "text/") || strings.HasSuffix(m, "json") || strings.HasSuffix(m, "xml") || strings.HasSuffix(m, "yaml")
}

// Media is the media type without its parameters, empty for one that cannot be read.
func (f File) Media() string {
	m, _, err := mime.ParseMediaType(f.MediaType)
	if err != nil {
		return ""
	}
	return m
}
