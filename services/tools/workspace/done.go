package workspace

import (
	"encoding/base64"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/waggle-dev/waggle/services/tools"
)

// done is what an operation answers.
type done struct {
	text string
	file []byte // the file that it has extended, unless that is too large
}

func (d done) result() *mcp.CallToolResult {
	r := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: d.text}}}
	if len(d.file) > 0 {
		r.Meta = mcp.Meta{tools.MetaFile: base64.StdEncoding.EncodeToString(d.file)}
	}
	return r
}
