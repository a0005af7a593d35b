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
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
)

const (
	version = "1.0.0"
	// tenantsSuffix is appended to the folder's name for the folders of the other tenants. They are beside it, not in it: no
	// tenant may see the files of another.
	tenantsSuffix = ".tenants"
)

// welcome is written into a new folder, so that a user's first question has an answer.
const welcome = `# Notes

Welcome to your workspace. Agents can list, read, write and search the files in
this folder, and nothing outside of it.

- Put files here that your agents should know.
- Ask: "Which files are in the workspace, and what does notes.md say?"
`

// Open returns the folders rooted at dir: the default tenant owns dir itself, any other one dir.tenants/<tenant>. It creates
// a missing folder, with a notes.md in it.
func Open(dir string) (*Folders, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace folder: %w", err)
	}
	f := &Folders{dir: abs}
	root, err := f.Root(id.DefaultTenant)
	if err != nil {
		return nil, err
	}
	return f, root.Close()
}

// Root opens the tenant's folder. The caller closes it.
func (f *Folders) Root(tenant id.Tenant) (*os.Root, error) {
	dir := f.dir
	if tenant != id.DefaultTenant {
		dir = filepath.Join(f.dir+tenantsSuffix, tenant.String())
	}
	root, err := os.OpenRoot(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return root, wrapOpen(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := prepare(dir); err != nil {
		return nil, wrapOpen(err)
	}
	root, err = os.OpenRoot(dir)
	return root, wrapOpen(err)
}

func wrapOpen(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("open the workspace folder: %w", err)
}

// prepare creates the folder with a welcome in it. It does not change an existing folder.
func prepare(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "notes.md"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640) //nolint:gosec // The folder is the operator's choice.
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(welcome)
	return errors.Join(err, f.Close())
}

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
	}, handle(s, s.put))
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
		text, err := do(ctx, root, in)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
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
