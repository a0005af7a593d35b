package tools

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// BuiltinServer is the name of the server of the workspace folder.
const BuiltinServer = "workspace"

const (
	// builtinName is the server of the workspace folder.
	builtinName = BuiltinServer
	// defaultWorkspace is where a newcomer's agents find files.
	defaultWorkspace = "workspace"
	// defaultTimeout is what MCP clients commonly allow a call.
	defaultTimeout = 60 * time.Second
	// defaultOutputCap is more than a model can use of one result, and eight times
	// as much fits into a message of the bus.
	defaultOutputCap = 128 << 10
	// maxOutputCap keeps a result within a bus message of 1 MiB.
	maxOutputCap = 512 << 10
	// defaultMaxCalls is eight agents with eight parallel calls each.
	defaultMaxCalls = 64
)

// Config says which tools there are.
type Config struct {
	// Workspace is the folder of the built-in server. Empty means ./workspace. It
	// is made, with a notes.md in it, if it does not exist.
	Workspace string
	Builtin   bool           // offer the built-in server, named "workspace"
	Servers   []ServerConfig // the other servers
	MaxCalls  int            // calls that may run at once; more are OVERLOADED. 0 = 64
}

// ServerConfig is one MCP server: a program that is started and spoken to over
// its standard input and output (Command), or a streamable HTTP endpoint (URL).
// It comes from the operator alone; nothing in it is ever taken from a message.
type ServerConfig struct {
	// Name is the beginning of the names of its tools: [A-Za-z0-9_-]{1,30}. No
	// server may be named like another one plus an underscore.
	Name string

	// Command is a program and its arguments. It gets PATH, HOME, LANG and TMPDIR
	// and Env as its environment, nothing else, and runs in Dir.
	Command []string
	Env     map[string]string
	Dir     string

	// URL is an http or https endpoint. Headers are sent with every request and
	// never to another host.
	URL     string
	Headers map[string]string

	Timeout   time.Duration // upper bound of one call; 0 = 60 s
	OutputCap int           // bytes of text kept of one result; 0 = 128 KiB, at most 512 KiB

	// ReadOnly and Idempotent name tools (as the server calls them) that change
	// nothing, or that may be called twice. They add to the server's own hints.
	ReadOnly, Idempotent []string
	// IgnoreHints makes the two lists all there is: the server's hints do not count.
	IgnoreHints bool

	// KeepOnCancel trusts the server to stop a call that was cancelled or timed
	// out. Otherwise a program that does not answer the cancellation is killed
	// and started again, which is certain but loses what it had in memory.
	KeepOnCancel bool

	// Tenants that may see the server. Empty means all of them.
	Tenants []id.Tenant
}

// withDefaults checks the configuration and fills it in. Errors name the option.
func (c Config) withDefaults() (Config, error) {
	if c.Workspace == "" {
		c.Workspace = defaultWorkspace
	}
	if c.MaxCalls == 0 {
		c.MaxCalls = defaultMaxCalls
	}
	if c.MaxCalls < 0 {
		return c, fmt.Errorf("tools.max_calls: must not be negative")
	}
	c.Servers = slices.Clone(c.Servers)
	var names []string
	if c.Builtin {
		names = append(names, builtinName)
	}
	for i := range c.Servers {
		if err := c.Servers[i].complete(); err != nil {
			return c, fmt.Errorf("tools.servers[%d].%w", i, err)
		}
		names = append(names, c.Servers[i].Name)
	}
	return c, checkServerNames(names)
}

func (c *ServerConfig) complete() error {
	switch {
	case len(c.Command) == 0 && c.URL == "":
		return fmt.Errorf("command: give a command or a url")
	case len(c.Command) > 0 && c.URL != "":
		return fmt.Errorf("url: give a command or a url, not both")
	case len(c.Command) > 0 && c.Command[0] == "":
		return fmt.Errorf("command: the program's name is empty")
	case c.URL != "" && !isHTTP(c.URL):
		return fmt.Errorf("url: must be an http or https address")
	case c.Timeout < 0:
		return fmt.Errorf("timeout: must not be negative")
	case c.OutputCap < 0 || c.OutputCap > maxOutputCap:
		return fmt.Errorf("output_cap: must be at most %d", maxOutputCap)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.OutputCap == 0 {
		c.OutputCap = defaultOutputCap
	}
	return nil
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// visible reports whether the tenant may see the server.
func (c *ServerConfig) visible(t id.Tenant) bool {
	return len(c.Tenants) == 0 || slices.Contains(c.Tenants, t)
}
