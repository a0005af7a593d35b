package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

// The SDK decodes an answer as a whole: one member of a wrong type, or one block of a type that is newer than the SDK, costs
// all tools of a server, or a result that the model could use. So answers are mended before it sees them: what is optional
// and wrong is left out, and what cannot be used is replaced by a word about it.

// metaMended is the member of a list's metadata in which mendList tells catalogue what it did. One of the server's is
// replaced.
const metaMended = "waggle.dev/mended"

// maxLeft bounds the list of tools that are not on offer.
const maxLeft = 32

// mended is what mendList did to one page of tools.
type mended struct {
	Names  []string        `json:"names"`            // of the tools of the page
	Left   []tools.LeftOut `json:"left,omitempty"`   // entries that are not tools
	More   int             `json:"more,omitempty"`   // such entries beside those
	Passed []string        `json:"passed,omitempty"` // members that were taken out
}

// leave records an entry that is not a tool.
func (m *mended) leave(tool, why string) {
	if len(m.Left) == maxLeft {
		m.More++
		return
	}
	m.Left = append(m.Left, tools.LeftOut{Tool: tool, Why: why})
}

// object is a JSON object with members that are not decoded.
type object map[string]json.RawMessage

// objectOf returns the object; nil for other values.
func objectOf(raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// mend returns the result of a request in a form that the SDK decodes.
func mend(result json.RawMessage) json.RawMessage {
	o := objectOf(result)
	switch {
	case o["tools"] != nil:
		return mendList(o)
	case o["content"] != nil, o["structuredContent"] != nil, o["isError"] != nil:
		if json.Unmarshal(result, new(mcp.CallToolResult)) != nil {
			return mendResult(o)
		}
	}
	return result
}

// mendMessage returns a message with its result mended. Other texts stay as they are.
func mendMessage(message []byte) []byte {
	o := objectOf(message)
	if o["result"] == nil {
		return message
	}
	better := mend(o["result"])
	if bytes.Equal(better, o["result"]) {
		return message
	}
	o["result"] = better
	return encode(o)
}

// encode encodes what holds only JSON and texts.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}

// mendList mends a page of tools.
func mendList(o object) json.RawMessage {
	var did mended
	var entries []json.RawMessage
	if json.Unmarshal(o["tools"], &entries) != nil {
		did.leave("", "the server's list of tools is not an array")
	}
	good := []json.RawMessage{}
	for i, entry := range entries {
		if len(good) > bound.MaxTools {
			break // catalogue reports the excess
		}
		tool, name, passed, why := mendTool(entry)
		if why != "" {
			did.leave("", fmt.Sprintf("entry %d of the list: %s", i+1, why))
			continue
		}
		good, did.Names = append(good, tool), append(did.Names, name)
		did.Passed = append(did.Passed, passed[:min(len(passed), maxLeft-len(did.Passed))]...)
	}
	o["tools"] = encode(good)
	for _, name := range sift[mcp.ListToolsResult](o, "tools") {
		if name == "nextCursor" && string(bytes.TrimSpace(o[name])) != "null" {
			did.leave("", "further tools: the mark of the next page (nextCursor) is not text")
		}
	}
	meta := objectOf(o["_meta"])
	if meta == nil {
		meta = object{}
	}
	meta[metaMended] = encode(did)
	o["_meta"] = encode(meta)
	return encode(o)
}

// mendTool returns a tool without the members that cannot be decoded, and their names; or why the entry is not a tool.
func mendTool(entry json.RawMessage) (tool json.RawMessage, name string, passed []string, why string) {
	o := objectOf(entry)
	switch {
	case o == nil:
		return nil, "", nil, "it is not an object"
	case json.Unmarshal(o["name"], &name) != nil || name == "":
		return nil, "", nil, "it has no name"
	}
	if schema := bytes.TrimSpace(o["inputSchema"]); len(schema) == 0 || string(schema) == "null" {
		o["inputSchema"] = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if hints := objectOf(o["annotations"]); hints != nil {
		for _, hint := range sift[mcp.ToolAnnotations](hints) {
			passed = append(passed, fmt.Sprintf("annotations.%s of %s: it has a wrong type", hint, bound.Shorten(name, bound.Title)))
		}
		o["annotations"] = encode(hints)
	}
	for _, member := range sift[mcp.Tool](o, "name", "inputSchema") {
		passed = append(passed, fmt.Sprintf("%s of %s: it has a wrong type", member, bound.Shorten(name, bound.Title)))
	}
	return encode(o), name, passed, ""
}

// sift takes the members out of the object that a T cannot have, and returns their names. It keeps the given ones.
func sift[T any](o object, keep ...string) (out []string) {
	for name, v := range o {
		if !slices.Contains(keep, name) && json.Unmarshal(encode(object{name: v}), new(T)) != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	for _, name := range out {
		delete(o, name)
	}
	return out
}

// mendResult mends the result of a call.
func mendResult(o object) json.RawMessage {
	good, left := []json.RawMessage{}, 0
	for _, b := range blocksOf(o["content"]) {
		block, fits := mendBlock(b)
		if !fits {
			if left++; left > maxNotes {
				continue
			}
		}
		good = append(good, block)
	}
	if left > maxNotes {
		good = append(good, note(fmt.Sprintf("%d more content blocks", left-maxNotes)))
	}
	o["content"] = encode(good)
	// An error in other words is still an error.
	if said := strings.Trim(strings.ToLower(string(o["isError"])), ` "`); said == "true" || said == "1" {
		o["isError"] = json.RawMessage("true")
	}
	for name, v := range o {
		if name != "content" && json.Unmarshal(encode(object{"content": json.RawMessage("[]"), name: v}), new(mcp.CallToolResult)) != nil {
			delete(o, name)
		}
	}
	return encode(o)
}

// blocksOf returns the blocks of a result. Some servers send one block, or a text, in place of a list.
func blocksOf(content json.RawMessage) (blocks []json.RawMessage) {
	var text string
	switch content = bytes.TrimSpace(content); {
	case len(content) == 0, json.Unmarshal(content, &blocks) == nil:
		return blocks
	case json.Unmarshal(content, &text) == nil:
		return []json.RawMessage{encode(&mcp.TextContent{Text: text})}
	}
	return []json.RawMessage{content}
}

// maxNotes bounds the notes of one result: a server may send any number of blocks that cannot be read.
const maxNotes = 20

// required are the members of a block without which it has no use, by its type.
var required = map[string][]string{
	"text": {"text"}, "image": {"data", "mimeType"}, "audio": {"data", "mimeType"}, "resource_link": {"uri"}, "resource": {"resource"},
}

// mendBlock returns a block of content as it is, or without members that cannot be decoded; or a note in its place, and false.
func mendBlock(block json.RawMessage) (_ json.RawMessage, fits bool) {
	decodes := func(block json.RawMessage) bool {
		return json.Unmarshal(encode(map[string]any{"content": []json.RawMessage{block}}), new(mcp.CallToolResult)) == nil
	}
	if decodes(block) {
		return block, true
	}
	o := objectOf(block)
	var kind string
	if o == nil || json.Unmarshal(o["type"], &kind) != nil {
		return note("a content block without a type"), false
	}
	needed, known := required[kind]
	if !known {
		return note(fmt.Sprintf("a content block of type %s", bound.Shorten(kind, bound.Title))), false
	}
	for name, v := range o {
		if name != "type" && !slices.Contains(needed, name) && !decodes(encode(object{"type": o["type"], name: v})) {
			delete(o, name)
		}
	}
	if better := encode(o); decodes(better) {
		return better, true
	}
	return note(fmt.Sprintf("a content block of type %s that cannot be read", kind)), false
}

// note returns a block that tells the model of something that it does not get.
func note(what string) json.RawMessage {
	return encode(&mcp.TextContent{Text: "(" + what + " was left out)"})
}
