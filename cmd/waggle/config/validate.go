package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/plug"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Roles of a process, in the order of starting.
const (
	RoleTools    = "tools"
	RoleWorker   = "worker"
	RolePipeline = "pipeline"
	RoleSession  = "session"
	RoleTask     = "task"
	RoleTeam     = "team"
	RoleGateway  = "gateway"
)

// Roles lists every role.
var Roles = []string{RoleTools, RoleWorker, RolePipeline, RoleSession, RoleTask, RoleTeam, RoleGateway}

// For states the use of a configuration: the roles to run, and the bus.
type For struct {
	Roles    []string
	Embedded bool // with the embedded NATS server
}

// Has reports whether For includes the role.
func (f For) Has(role string) bool { return slices.Contains(f.Roles, role) }

// ParseRoles splits a list such as "gateway,worker", refuses unknown names and
// returns the roles in starting order.
func ParseRoles(list []string) ([]string, error) {
	for _, r := range list {
		if !slices.Contains(Roles, r) {
			return nil, fmt.Errorf("--role: unknown role %q; choose from %s", r, strings.Join(Roles, ", "))
		}
	}
	var out []string
	for _, r := range Roles {
		if slices.Contains(list, r) {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--role: specify at least one of %s", strings.Join(Roles, ", "))
	}
	return out, nil
}

// problems collects errors, each with the path of its setting.
type problems []error

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

// Validate checks all values and returns every problem at once, each beginning with the path of the setting.
func (l *Loaded) Validate(use For) error {
	var p problems
	c := &l.Config
	p.general(c, use)
	p.numbers(c)
	p.nats(&c.NATS, use)
	p.quota(&c.Quota)
	p.budget("budget", c.Budget)
	p.access(&c.Access)
	p.audit(&c.Audit)
	p.cells(c, use)
	p.console(c, use)
	if use.Has(RoleWorker) {
		p.model(c)
		p.prices(&c.Models)
		p.assistant(&c.Assistant)
	}
	if use.Has(RolePipeline) {
		p.pipeline(&c.Pipeline)
	}
	if use.Has(RoleSession) {
		p.stateKeys(&c.Session)
	}
	if use.Has(RoleTask) {
		p.task(&c.Task)
	}
	if use.Has(RoleTeam) {
		p.teams(c.Teams)
	}
	if use.Has(RoleGateway) {
		if language := c.Gateway.Language; language != "" && language != "zh_CN" && language != "en_US" {
			p.add("gateway.language", "%q is not one of zh_CN, en_US", language)
		}
		p.auth(&c.Auth, c.Addr)
		p.asp(&c.Gateway)
		p.legacy(c)
	}
	if use.Has(RoleTools) {
		p.tools(&c.Tools)
		p.sandboxes(l)
		p.policy(&c.Tools)
	}
	return errors.Join(p...)
}

func (p *problems) general(c *Config, use For) {
	if use.Has(RoleGateway) && c.Addr == "" {
		c.Addr = DefaultAddr
	}
	if c.Addr != "" {
		p.hostPort("addr", c.Addr)
	}
	p.telemetry(c, use)
	if use.Embedded && c.Data == "" {
		p.add("data", "specify a folder for the embedded NATS server")
	}
	if use.Has(RoleTools) && c.Tools.Builtin && c.Workspace == "" {
		p.add("workspace", "specify a folder, or set tools.builtin to false")
	}
	if !slices.Contains([]string{"standard", "strict"}, c.Profile) {
		p.add("profile", "%q is neither standard nor strict", c.Profile)
	}
	if _, err := zerolog.ParseLevel(c.Log.Level); err != nil || c.Log.Level == "" {
		p.add("log.level", "%q is not a level; choose from trace, debug, info, warn, error, disabled", c.Log.Level)
	}
	if !slices.Contains([]string{"auto", "json", "console"}, c.Log.Format) {
		p.add("log.format", "%q is not a format; choose from auto, json, console", c.Log.Format)
	}
}

func (p *problems) console(c *Config, use For) {
	if c.Console.Plug == "" {
		return
	}
	if err := plug.Check(c.Console.Plug); err != nil {
		p.add("console.plug", "%v", err)
	}
	if !use.Embedded || !c.Auth.Empty() || auth.RequireLoopback(c.Addr) != nil {
		p.add("console.plug", "only \"waggle up\" on a loopback address without authentication may have this")
	}
}

func (p *problems) telemetry(c *Config, use For) {
	switch t := &c.Telemetry; {
	case t.Addr == LegacyOff:
		t.Addr = ""
	case t.Addr != "" && t.Addr == c.Addr && !strings.HasSuffix(t.Addr, ":0"):
		p.add("telemetry.addr", "%s is already the address for clients (addr); use another one for metrics", t.Addr)
	case t.Addr != "":
		p.hostPort("telemetry.addr", t.Addr)
	case use.Embedded && c.Addr == DefaultAddr:
		t.Addr = DefaultTelemetryAddr
	case use.Embedded:
		t.Addr = "127.0.0.1:0"
	}
}

func (p *problems) hostPort(path, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		p.add(path, "%q is not of the form HOST:PORT", addr)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		p.add(path, "%q has no valid port", addr)
	}
}

// numbers refuses negative values, but of quotas, where -1 means no limit.
func (p *problems) numbers(c *Config) {
	for _, f := range Fields(c) {
		v := f.value
		if v.IsValid() && !strings.HasPrefix(f.Path, "quota.") && (v.CanInt() && v.Int() < 0 || v.CanFloat() && v.Float() < 0) {
			p.add(f.Path, "%s must not be negative", f.Value())
		}
	}
}

// Values of the setting that names the creator of the streams.
const (
	BootstrapAuto   = "auto"
	BootstrapVerify = "verify"
)

func (p *problems) nats(n *NATS, use For) {
	if n.Bootstrap != BootstrapAuto && n.Bootstrap != BootstrapVerify {
		p.add("nats.bootstrap", "%q is neither auto nor verify", n.Bootstrap)
	}
	if !slices.Contains([]int{1, 3, 5}, n.Replicas) {
		p.add("nats.replicas", "%d is not 1, 3 or 5", n.Replicas)
	}
	if !slices.ContainsFunc(subject.PartitionChoices(), func(c subject.Partitions) bool { return int(c) == n.Partitions }) {
		p.add("nats.partitions", "%d is not 16, 64 or 256", n.Partitions)
	}
	if use.Embedded {
		p.embedded(n)
		return
	}
	for _, part := range splitList(n.URL) {
		u, err := url.Parse(part)
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			p.add("nats.url", "%s is not a NATS address such as nats://127.0.0.1:4222", RedactURLs(part))
		}
	}
	if n.URL == "" {
		p.add("nats.url", "specify the NATS server (--nats or WAGGLE_NATS)")
	}
	if (n.TLSCert == "") != (n.TLSKey == "") {
		p.add("nats.tls_cert", "set both nats.tls_cert and nats.tls_key, or neither")
	}
	if n.Creds != "" && n.NKey != "" {
		p.add("nats.creds", "set either nats.creds or nats.nkey, not both")
	}
}

func (p *problems) embedded(n *NATS) {
	p.hostPort("nats.addr", n.Addr)
	if host, _, err := net.SplitHostPort(n.Addr); err == nil && !loopback(host) {
		p.add("nats.addr", "%s is not a loopback address, and the embedded NATS server does not encrypt: others could read the traffic; "+
			"run a NATS server of your own and use \"waggle serve --nats URL\"", n.Addr)
	}
	if n.Replicas > 1 {
		p.add("nats.replicas", "the embedded NATS server is a single server; use 1")
	}
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

func (p *problems) httpURL(path, s string) {
	if s == "" {
		return
	}
	if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		p.add(path, "%s is not an http or https URL", RedactURLs(s))
	}
}

// Empty reports whether clients connect without authentication.
func (a Auth) Empty() bool { return len(a.APIKeys) == 0 && a.JWT.Issuer == "" }

func (p *problems) auth(a *Auth, addr string) {
	if host, _, err := net.SplitHostPort(addr); err == nil && a.Empty() && !loopback(host) {
		p.add("addr", "%s can be reached from other machines without authentication; "+
			"configure auth.api_keys or auth.jwt, or listen on 127.0.0.1", addr)
	}
	seen := map[string]bool{}
	for i, k := range a.APIKeys {
		p.apiKey(fmt.Sprintf("auth.api_keys[%d]", i), k, seen)
	}
	p.jwt(&a.JWT)
	p.oidc(a)
}

func (p *problems) oidc(a *Auth) {
	o := &a.OIDC
	if o.Token != TokenAccess && o.Token != TokenID {
		p.add("auth.oidc.token", "%q is neither %s nor %s", o.Token, TokenAccess, TokenID)
	}
	if o.ClientID == "" {
		return
	}
	if !slices.Contains(o.Scopes, "openid") {
		p.add("auth.oidc.scopes", "must include openid")
	}
	switch u, err := url.Parse(a.JWT.Issuer); {
	case a.JWT.Issuer == "":
		p.add("auth.oidc", "set auth.jwt, for the issuer whose tokens are accepted")
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		p.add("auth.jwt.issuer", "people cannot sign in there: it must be an https URL, or an http URL on this machine")
	}
}

func (p *problems) apiKey(at string, k APIKey, seen map[string]bool) {
	if k.ID == "" || seen[k.ID] {
		p.add(at+".id", "every key needs a unique id")
	}
	seen[k.ID] = true
	if b, err := hex.DecodeString(k.SHA256.Reveal()); err != nil || len(b) != 32 {
		p.add(at+".sha256", "must be a SHA-256 in hex (64 digits): printf %%s KEY | sha256sum")
	}
	if _, err := id.ParseTenant(k.Tenant); err != nil {
		p.add(at+".tenant", "%s", err)
	}
	p.roles(at+".roles", k.Roles)
}

func (p *problems) roles(at string, roles []string) {
	known := []string{"user", "operator", "viewer", "agent", "service"}
	for _, r := range roles {
		if !slices.Contains(known, r) {
			p.add(at, "unknown role %q; choose from %s", r, strings.Join(known, ", "))
		}
	}
}

func (p *problems) jwt(j *JWT) {
	p.httpURL("auth.jwt.jwks_url", j.JWKSURL)
	keys := (j.JWKSFile != "") != (j.JWKSURL != "")
	switch {
	case j.Issuer != "" && !keys:
		p.add("auth.jwt", "set either jwks_file or jwks_url for the issuer's keys")
	case j.Issuer != "" && j.Audience == "":
		p.add("auth.jwt.audience", "set the audience of the tokens")
	case j.Issuer == "" && (j.JWKSFile != "" || j.JWKSURL != ""):
		p.add("auth.jwt.issuer", "set the issuer of the tokens")
	}
}

// serverName keeps a tool's full name (<server>_<tool>) within what models accept.
var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,30}$`)

func (p *problems) tools(t *Tools) {
	seen := map[string]bool{}
	if t.Builtin {
		seen["workspace"] = true
	}
	for i, s := range t.Servers {
		at := fmt.Sprintf("tools.servers[%d]", i)
		if !serverName.MatchString(s.Name) || seen[s.Name] {
			p.add(at+".name", "%q is not a unique name (letters, digits, _ and -; at most 30)", s.Name)
		}
		seen[s.Name] = true
		if (len(s.Command) > 0) == (s.URL != "") {
			p.add(at, "set either command or url")
		}
		p.httpURL(at+".url", s.URL)
		p.oauth(at, &t.Servers[i])
		for _, t := range s.Tenants {
			if _, err := id.ParseTenant(t); err != nil {
				p.add(at+".tenants", "%s", err)
			}
		}
		if s.PerTenant && s.URL != "" {
			p.add(at+".per_tenant", "applies to servers with a command; list a server with a url once per tenant")
		}
		if s.OutputCap < 0 || s.Timeout < 0 || s.PerTenantMax < 0 || s.PerTenantRest < 0 {
			p.add(at, "output_cap, timeout, per_tenant_max and per_tenant_rest must not be negative")
		}
	}
}
