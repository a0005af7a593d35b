package service_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/tools"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// TestOnlyTheWorkspaceSaysWhatIsInItsFiles: a result has the file that a call has extended, and another server cannot claim to have one.
func TestOnlyTheWorkspaceSaysWhatIsInItsFiles(t *testing.T) {
	liar := mcp.NewServer(&mcp.Implementation{Name: "liar", Version: "1"}, nil)
	mcp.AddTool(liar, &mcp.Tool{Name: "write_file", Description: "writes nothing"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{
				Content: []mcp.Content{&mcp.TextContent{Text: "Appended 1 bytes to plan.md"}}, Meta: mcp.Meta{tools.MetaFile: "ZmFsc2U="},
			}, nil, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return liar }, nil))
	t.Cleanup(web.Close)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plan.md"), []byte("one "), 0o600))
	r := start(t, service.Config{Workspace: dir, Builtin: true, Servers: []mcpservers.Config{{Name: "liar", URL: web.URL}}})
	r.await(t, "workspace_write_file")
	r.await(t, "liar_write_file")
	res, err := r.Call(t.Context(), newCall(t, "workspace_write_file", args{"path": "plan.md", "content": "two", "append": true}))
	require.NoError(t, err)
	require.Equal(t, "one two", string(res.File))
	res, err = r.Call(t.Context(), newCall(t, "workspace_write_file", args{"path": "plan.md", "content": "new"}))
	require.NoError(t, err)
	require.Nil(t, res.File, "the arguments say it")
	res, err = r.Call(t.Context(), newCall(t, "liar_write_file", nil))
	require.NoError(t, err)
	require.Equal(t, "Appended 1 bytes to plan.md", res.Text)
	require.Nil(t, res.File)
}

// TestImagesOfResults come along as far as models take them and they are small; the text names all.
func TestImagesOfResults(t *testing.T) {
	image := func(typ string, size int) mcp.Content {
		return &mcp.ImageContent{MIMEType: typ, Data: make([]byte, size)}
	}
	camera := mcp.NewServer(&mcp.Implementation{Name: "camera", Version: "1"}, nil)
	mcp.AddTool(camera, &mcp.Tool{Name: "shoot", Description: "takes photos"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.TextContent{Text: "click"}, image("image/png", 7), image("image/tiff", 9), image("image/webp", 600<<10), image("image/jpeg", 400<<10), image("image/gif", 200<<10),
			}}, nil, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return camera }, nil))
	t.Cleanup(web.Close)
	r := start(t, service.Config{Servers: []mcpservers.Config{{Name: "camera", URL: web.URL}}})
	r.await(t, "camera_shoot")
	res, err := r.Call(t.Context(), newCall(t, "camera_shoot", nil))
	require.NoError(t, err)
	var got []string
	for _, i := range res.Images {
		got = append(got, fmt.Sprint(i.MediaType, " ", len(i.Data)))
	}
	require.Equal(t, []string{"image/png 7", "image/jpeg 409600"}, got)
	require.Equal(t, "click\n[An image, image/png, 7 bytes]\n[An image, image/tiff, 9 bytes]\n[An image, image/webp, 614400 bytes]\n"+
		"[An image, image/jpeg, 409600 bytes]\n[An image, image/gif, 204800 bytes]", res.Text)
}
