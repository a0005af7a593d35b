package mcp

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/sandbox"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/oauth"
	"github.com/waggle-dev/waggle/services/tools/internal/scrub"
)

// OAuth is a client of the authorization server of an MCP server, for the grant client_credentials.
type OAuth = oauth.Config

// Config describes one MCP server: a program with the protocol over its standard input and output (Command), or a streamable
// HTTP endpoint (URL). The operator alone provides it; no part of it ever comes from a message.
type Config struct {
	// Name begins the names of the server's tools: [A-Za-z0-9_-]{1,30}. It must not equal another server's name plus an
	// underscore.
	Name string

	// Command is a program with its arguments. It gets only PATH, LANG, HOME, TMPDIR and Env as its environment, and runs in
	// Dir. In a sandbox HOME, TMPDIR and an empty Dir are a private folder, which ends with the program.
	Command []string
	Env     map[string]string
	Dir     string
	// Sandbox says what the program may do besides.
	Sandbox sandbox.Settings

	// URL is an http or https endpoint. The client sends Headers with every request and never to another host.
	URL     string
	Headers map[string]string
	// OAuth is the client with which tokens for the endpoint are fetched; nil without one.
	OAuth *OAuth

	Timeout   time.Duration // upper bound of one call; 0 = 60 s
	OutputCap int           // bytes of text kept of one result; 0 = 128 KiB, at most 512 KiB

	// Rules say which calls people are asked about. ReadOnly below adds to theirs.
	Rules tools.Rules

	// ReadOnly and Idempotent name tools (by the server's own names) that change nothing, or that allow a second call. They
	// add to the server's own hints.
	ReadOnly, Idempotent []string
	// IgnoreHints makes the two lists final: the server's hints do not count.
	IgnoreHints bool

	// KeepOnCancel trusts the server to stop a call that was cancelled or timed out. Otherwise the service kills and
	// restarts a program that does not answer the cancellation, which is certain but loses the program's memory.
	KeepOnCancel bool

	// Tenants lists the tenants that may see the server. Empty means all tenants.
	Tenants []id.Tenant

	// PerTenant starts a program for each tenant, with its first call, in a folder of its own within Dir. At most MaxPrograms run
	// beside the one that lists the tools (0 = 32); one ends RestAfter its last call (0 = 10 minutes).
	PerTenant   bool
	MaxPrograms int
	RestAfter   time.Duration

	// TellTenant sends the tenant with each call, for Waggle's own servers only.
	TellTenant bool
}

// Complete checks the configuration and fills in defaults. Errors begin with the option.
func (c *Config) Complete() error {
	if err := c.checkServer(); err != nil {
		return err
	}
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("timeout: must not be negative")
	case c.OutputCap < 0 || c.OutputCap > bound.MaxOutput:
		return fmt.Errorf("output_cap: must be at most %d", bound.MaxOutput)
	}
	if err := c.Sandbox.Complete(); err != nil {
		return err
	}
	if err := c.Rules.Check(); err != nil {
		return err
	}
	if err := c.checkPerTenant(); err != nil {
		return err
	}
	if c.Timeout == 0 {
		c.Timeout = bound.Timeout
	}
	if c.OutputCap == 0 {
		c.OutputCap = bound.Output
	}
	return nil
}

// checkServer checks that exactly one of Command and URL is set, and valid.
func (c *Config) checkServer() error {
	switch {
	case len(c.Command) == 0 && c.URL == "":
		return fmt.Errorf("command: set either command or url")
	case len(c.Command) > 0 && c.URL != "":
		return fmt.Errorf("url: set either command or url, not both")
	case len(c.Command) > 0 && c.Command[0] == "":
		return fmt.Errorf("command: the program's name is empty")
	case c.URL != "" && !isHTTP(c.URL):
		return fmt.Errorf("url: must be an http or https address")
	case c.OAuth != nil:
		return c.CheckOAuth()
	}
	return nil
}

// CheckOAuth checks the client for tokens. Errors begin with the option.
func (c *Config) CheckOAuth() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || c.URL == "":
		return fmt.Errorf("oauth: applies to servers with a url; pass a program its key in env")
	case u.User != nil, slices.ContainsFunc(slices.Collect(maps.Keys(c.Headers)), func(name string) bool { return strings.EqualFold(name, "Authorization") }):
		return fmt.Errorf("oauth: the token is sent as Authorization; remove Authorization from headers and url")
	}
	return c.OAuth.Check(c.URL)
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// scrubber removes the secrets of the configuration from the server's words.
func (c *Config) scrubber() scrub.Scrubber {
	secrets := slices.Concat(slices.Collect(maps.Values(c.Env)), slices.Collect(maps.Values(c.Headers)))
	for _, v := range c.Headers {
		_, credentials, _ := strings.Cut(v, " ") // after the scheme of Authorization
		secrets = append(secrets, credentials)
	}
	if u, err := url.Parse(c.URL); err == nil {
		password, _ := u.User.Password()
		secrets = append(secrets, password, u.RawQuery)
	}
	if c.OAuth != nil {
		secrets = append(secrets, c.OAuth.Secret)
	}
	return scrub.New(secrets...)
}

const (
	// maxPrograms is the default bound of a server's programs of tenants: with a few tens of megabytes each, as many as a small
	// machine bears.
	maxPrograms = 32
	// restAfter is the default time after its last call for which a program waits for the next one of its tenant.
	restAfter = 10 * time.Minute
)

// checkPerTenant checks the options for programs of tenants, and fills in defaults.
func (c *Config) checkPerTenant() error {
	switch {
	case !c.PerTenant && (c.MaxPrograms != 0 || c.RestAfter != 0):
		return fmt.Errorf("per_tenant: set it to true, or omit per_tenant_max and per_tenant_rest")
	case !c.PerTenant:
		return nil
	case len(c.Command) == 0:
		return fmt.Errorf("per_tenant: applies to servers with a command; list a server with a url once per tenant")
	case c.Sandbox.Mode == sandbox.Off && c.Dir == "":
		return fmt.Errorf("per_tenant: set dir: without a sandbox the programs would share the folder of waggle")
	case c.MaxPrograms < 0:
		return fmt.Errorf("per_tenant_max: must not be negative")
	case c.RestAfter < 0:
		return fmt.Errorf("per_tenant_rest: must not be negative")
	}
	if c.MaxPrograms == 0 {
		c.MaxPrograms = maxPrograms
	}
	if c.RestAfter == 0 {
		c.RestAfter = restAfter
	}
	return nil
}
