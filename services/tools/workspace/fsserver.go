// Package workspace is an MCP server for the files of one folder: list, read, write and search.
//
// No argument leads out of the folder. Every access uses [os.Root], which resolves each step of a
// path relative to an open directory, so that "..", absolute paths, symbolic links and files that
// are swapped meanwhile cannot leave it. Devices, sockets and named pipes are refused. A write
// replaces a file by rename and never changes it in place: another hard link keeps the old content.
//
// Every answer has a bound in bytes, entries, matches and scanned bytes.
package workspace

import (
	"context"
	"errors"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
)

const version = "1.0.0"

// New returns the MCP server of the folders. The caller connects it to a transport; it serves any number of sessions.
func New(folders *Folders) *mcp.Server {
	s := &server{folders: folders}
	m := mcp.NewServer(&mcp.Implementation{Name: "waggle-workspace", Title: "Workspace files", Version: version}, nil)
	closed := false
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed}
	mcp.AddTool(m, &mcp.Tool{
		Name: "list_files", Title: "List files", Annotations: reads,
		Description: "List the files and folders in the workspace, or in one of its folders, with their sizes. Folders end in a slash.",
	}, handle(s, s.list))
	mcp.AddTool(m, &mcp.Tool{
		Name: "read_file", Title: "Read a file", Annotations: reads,
		Description: "Read a text file of the workspace, whole or from one line on.",
	}, handle(s, s.read))
	mcp.AddTool(m, &mcp.Tool{
		Name: "search_files", Title: "Search files", Annotations: reads,
		Description: "Find text in the files of the workspace, with line numbers, or find files by name. Give text, or glob, or both.",
	}, handle(s, s.search))
	mcp.AddTool(m, &mcp.Tool{
		Name: writeFile, Title: "Write a file",
		Description: "Create or replace a text file in the workspace, or append to it. Missing folders are made.",
		Annotations: &mcp.ToolAnnotations{OpenWorldHint: &closed},
		Meta:        mcp.Meta{tools.MetaUnless: "append"},
	}, handleOf(s, s.put))
	return m
}

// Serve runs the server of one folder over standard input and output until the client closes the connection or ctx ends.
func Serve(ctx context.Context, dir string) error {
	f, err := Open(dir)
	if err != nil {
		return err
	}
	return New(f).Run(ctx, &mcp.StdioTransport{})
}

// handle adapts one operation to the SDK: it opens the caller's folder, and turns an error into a result that the model can
// read.
func handle[In any](s *server, do func(context.Context, *os.Root, In) (string, error)) mcp.ToolHandlerFor[In, any] {
	return handleOf(s, func(ctx context.Context, root *os.Root, _ id.Tenant, in In) (done, error) {
		text, err := do(ctx, root, in)
		return done{text: text}, err
	})
}

// handleOf is handle for an operation that depends on the tenant, too.
func handleOf[In any](s *server, do func(context.Context, *os.Root, id.Tenant, In) (done, error)) mcp.ToolHandlerFor[In, any] {
	return func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		tenant, err := tenantOf(req.Params.Meta)
		if err != nil {
			return nil, nil, err
		}
		root, err := s.folders.Root(tenant)
		if err != nil {
			return nil, nil, errors.New("the workspace folder cannot be opened")
		}
		defer root.Close()
		d, err := do(ctx, root, tenant, in)
		if err != nil {
			return nil, nil, err
		}
		return d.result(), nil, nil
	}
}

// tenantOf reads the tenant that the tool service put into the request. A request without a tenant belongs to the default
// tenant: a stdio server has no other.
func tenantOf(m mcp.Meta) (id.Tenant, error) {
	v, ok := m[tools.MetaTenant]
	if !ok {
		return id.DefaultTenant, nil
	}
	s, _ := v.(string)
	t, err := id.ParseTenant(s)
	if err != nil {
		return id.Tenant{}, errors.New("the request names no valid tenant")
	}
	return t, nil
}
