package mcp

import (
	"fmt"
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

// Config is one MCP server: a program that is started and spoken to over
// its standard input and output (Command), or a streamable HTTP endpoint (URL).
// It comes from the operator alone; nothing in it is ever taken from a message.
type Config struct {
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

	// TellTenant sends the tenant with each call, for servers of ours alone.
	TellTenant bool
}

// Complete checks the configuration and fills in defaults. Errors begin with the option.
func (c *Config) Complete() error {
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
	case c.OutputCap < 0 || c.OutputCap > bound.MaxOutput:
		return fmt.Errorf("output_cap: must be at most %d", bound.MaxOutput)
	}
	if c.Timeout == 0 {
		c.Timeout = bound.Timeout
	}
	if c.OutputCap == 0 {
		c.OutputCap = bound.Output
	}
	return nil
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
