package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
)

// answered turns a tool's answer into a result of at most limit bytes, unless the answer does not fit the tool's schema.
func answered(res *mcp.CallToolResult, tool *offer.Tool, raw bool, limit int) (tools.Result, error) {
	if tool.Result != nil && !res.IsError && res.StructuredContent != nil {
		b, err := plainjson.Marshal(res.StructuredContent)
		if err != nil {
			return tools.Result{}, fault.New(fault.BadOutput).Wrap(err)
		}
		if err := tool.Result.CheckResult(b); err != nil {
			return tools.Result{}, err
		}
	}
	if raw {
		return renderRaw(res, limit)
	}
	return render(res, limit), nil
}

// maxImages bounds the images of a result in bytes: what a message on the bus has room for, in base64.
const maxImages = 512 << 10

// imagesOf returns the images that models take, the first ones that are small enough together.
func imagesOf(res *mcp.CallToolResult) (out []tools.Image) {
	room := maxImages
	for _, c := range res.Content {
		i, ok := c.(*mcp.ImageContent)
		if !ok || !(event.File{MediaType: i.MIMEType}).Picture() || len(i.Data) > room || len(i.Data) == 0 {
			continue
		}
		room -= len(i.Data)
		out = append(out, tools.Image{MediaType: i.MIMEType, Data: i.Data})
	}
	return out
}

// fileOf returns the file that the workspace says a call has extended, if any.
func fileOf(res *mcp.CallToolResult) ([]byte, error) {
	s, ok := res.Meta[tools.MetaFile].(string)
	if !ok {
		return nil, nil
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, fault.New(fault.BadOutput).Wrap(err)
	}
	return b, nil
}

// render turns a result into text of at most limit bytes. It keeps text, and describes content that a model cannot read here
// by its kind and size.
func render(res *mcp.CallToolResult, limit int) tools.Result {
	text := textOf(res)
	out := tools.Result{Text: text, Bytes: len(text), IsError: res.IsError, Images: imagesOf(res)}
	if len(text) > limit {
		out.Text, out.Truncated = bound.Cut(text, limit), true
	}
	return out
}

func textOf(res *mcp.CallToolResult) string {
	parts := texts(res)
	if extra := structured(res, parts); extra != "" {
		parts = append(parts, extra)
	}
	return strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD")
}

func texts(res *mcp.CallToolResult) []string {
	var parts []string
	for _, c := range res.Content {
		parts = append(parts, contentText(c))
	}
	return parts
}

// renderRaw turns a result into the array of its content as JSON of at most limit bytes. A longer array becomes one text, as
// from render, which bound.Cut shortens until its JSON fits.
func renderRaw(res *mcp.CallToolResult, limit int) (tools.Result, error) {
	all := append([]mcp.Content{}, res.Content...)
	if extra := structured(res, texts(res)); extra != "" {
		all = append(all, &mcp.TextContent{Text: extra})
	}
	data, err := plainjson.Marshal(all)
	out := tools.Result{Data: data, Bytes: len(data), IsError: res.IsError}
	if err != nil || len(data) <= limit {
		return out, err
	}
	text := textOf(res)
	for n := min(limit, len(text)); n >= 0; n -= max(1, (len(out.Data)-limit)/6) {
		if n < len(text) {
			text = bound.Cut(text, n)
		}
		out.Data, err = plainjson.Marshal([]mcp.Content{&mcp.TextContent{Text: text}})
		if err != nil || len(out.Data) <= limit {
			break
		}
	}
	out.Truncated = true
	return out, err
}

// structured returns the structured content as JSON, unless the content repeats it. Servers should repeat it there, but not
// all do.
func structured(res *mcp.CallToolResult, parts []string) string {
	if res.StructuredContent == nil {
		return ""
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return ""
	}
	var want, got any
	if json.Unmarshal(b, &want) != nil || repeats(want, res.Content, parts) {
		return ""
	}
	for _, p := range parts {
		if json.Unmarshal([]byte(p), &got) == nil && reflect.DeepEqual(want, got) {
			return ""
		}
	}
	return string(b)
}

// repeats reports whether the structured content merely wraps the content: an object whose one member is the text, or all of
// the content. Servers with a formal schema send such objects.
func repeats(structured any, content []mcp.Content, parts []string) bool {
	object, ok := structured.(map[string]any)
	if !ok || len(object) != 1 {
		return false
	}
	for _, v := range object {
		if text, ok := v.(string); ok {
			return text == strings.Join(parts, "\n")
		}
		var all any
		b, err := json.Marshal(content)
		return err == nil && json.Unmarshal(b, &all) == nil && reflect.DeepEqual(v, all)
	}
	return false
}

func contentText(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("[An image, %s, %d bytes]", bound.Shorten(c.MIMEType, bound.Title), len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[A sound, %s, %d bytes]", bound.Shorten(c.MIMEType, bound.Title), len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[A link to %s: %s]", bound.Shorten(c.Name, bound.Title), bound.Shorten(c.URI, bound.Message))
	case *mcp.EmbeddedResource:
		if c.Resource != nil && c.Resource.Blob == nil {
			return c.Resource.Text
		}
	}
	return "[Content that is not text]"
}
