package tools

import "github.com/waggle-dev/waggle/proto-schemas/command"

// ServiceName is the service in subjects and in the directory.
var ServiceName = command.Tools

// BuiltinServer is the name of the built-in provider: the workspace folder.
const BuiltinServer = "workspace"

// Card is the service's entry in the directory.
type Card struct {
	Servers []string `json:"servers"`        // the configured servers
	Down    []string `json:"down,omitempty"` // the servers without a connection
}

// Members of _meta between this service and its MCP servers.
const (
	// MetaTenant, of a call, names the tenant whose folder the call uses.
	MetaTenant = "waggle.dev/tenant"
	// MetaUnless, of a tool, names the boolean argument without which a call is idempotent.
	MetaUnless = "waggle.dev/idempotentUnless"
	// MetaFile, of a result, holds the contents of the file that a call has extended, in base64.
	MetaFile = "waggle.dev/file"
)
