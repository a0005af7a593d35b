package process

import (
	"context"
	"fmt"
	"maps"
	"net/url"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process/own"
	"github.com/waggle-dev/waggle/console"
	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/asp/participants"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/services/status"
)

func (p *process) gateway(ctx context.Context) (lifecycle.Component, error) {
	c := p.Config.Gateway
	limits, err := p.connections(ctx)
	if err != nil {
		return nil, err
	}
	log := p.Logger.With().Str("role", "gateway").Logger()
	token, forget, err := own.NewStartToken(p.Config, p.Use.Embedded)
	p.closers = append(p.closers, forget)
	if err != nil {
		return nil, err
	}
	p.running.StartToken = token
	cells, err := p.cells(ctx)
	if err != nil {
		return nil, err
	}
	pages, err := p.pages()
	if err != nil {
		return nil, err
	}
	g, err := gateway.New(gateway.Config{
		Addr: p.Config.Addr, AllowedOrigins: c.AllowedOrigins, AllowedHosts: c.AllowedHosts, StartToken: token,
		TrustedProxies: c.TrustedProxies, ForwardedHeader: c.ForwardedHeader, ProxyProtocol: c.ProxyProtocol,
		ReadLimit: c.ReadLimit, HandshakeTimeout: c.HandshakeTimeout, FirstMessage: c.FirstMessage,
		MessageTimeout: c.MessageTimeout, ReadyTimeout: c.ReadyTimeout,
		PingInterval: c.PingInterval, PongTimeout: c.PongTimeout, WriteStall: c.WriteStall, QueueBytes: c.QueueBytes,
		MessageRate: c.MessageRate, MessageBurst: c.MessageBurst, MaxConnections: c.MaxConnections,
		PerPrincipal: c.PerPrincipal, PerIP: c.PerIP, HandshakeRate: c.HandshakeRate, DrainSpread: c.DrainSpread, StreamMaxAge: c.StreamMaxAge,
		RequestRate: c.RequestRate, Requests: c.Requests,
		Heartbeat: c.Heartbeat, SessionsPerSocket: c.SocketSessions,
		Participants: participantLimits(p.Config), Legacy: legacy(c.Legacy),
	}, gateway.Deps{
		Logger: log, Registry: p.registry, Conn: p.conn, Log: p.log, Commands: p.commands,
		Directory: p.directory, Auth: p.auth, Version: p.Version, Clock: p.clock.Now, Topology: Topology(p.Config),
		Quota: limits, Audit: p.audit, Access: p.Config.Access.Policy(), Signer: p.signing.Signer, Signatures: p.signing.Verifier, Cells: cells, Pages: pages,
		Routes:  p.routes(),
		Examine: (&inspector{p: p}).look, Rates: p.fleet().List, Console: api.ConsoleInfo{OIDC: p.login(), Plug: p.Config.Console.Plug},
		Settings: p.settings(),
		Status: func() api.Status {
			s := status.Public(p.directory, Services())
			s.Version = p.Version
			return s
		},
	})
	if err != nil {
		return nil, err
	}
	p.addr = g.Addr
	return g, nil
}

// settings returns the function that lists the settings of the process, nil if it has none but those in its code.
func (p *process) settings() func() api.SettingList {
	if p.Source == nil {
		return nil
	}
	return func() api.SettingList {
		out := api.SettingList{Gateway: p.instance.String()}
		for _, s := range p.Source.Settings() {
			out.Settings = append(out.Settings, api.Setting{Name: s.Path, Value: s.Value, Source: string(s.Source)})
		}
		return out
	}
}

// pages returns the web console, nil if it is off.
func (p *process) pages() (gateway.Pages, error) {
	if !p.Config.Console.Enabled {
		return nil, nil //nolint:nilnil // no pages are served
	}
	var origins []string
	for setting, address := range map[string]string{"auth.jwt.issuer": p.issuer(), "console.plug": p.Config.Console.Plug} {
		if address == "" {
			continue
		}
		u, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", setting, err)
		}
		origins = append(origins, u.Scheme+"://"+u.Host)
	}
	return console.New(origins...)
}

// issuer returns the address at which people sign in, empty if they cannot.
func (p *process) issuer() string {
	if p.Config.Auth.OIDC.ClientID == "" {
		return ""
	}
	return p.Config.Auth.JWT.Issuer
}

// login returns how people sign in at the issuer of the tokens, nil if they cannot.
func (p *process) login() *api.OIDCLogin {
	o := p.Config.Auth.OIDC
	if o.ClientID == "" {
		return nil
	}
	return &api.OIDCLogin{Issuer: p.Config.Auth.JWT.Issuer, ClientID: o.ClientID, Scopes: o.Scopes, Token: o.Token}
}

// routes returns the protocol and the binding of each path for WebSockets.
func (p *process) routes() map[string]gateway.Route {
	routes := p.swarmRoutes()
	maps.Copy(routes, map[string]gateway.Route{
		pathChat: gateway.Single(orbit.Dialect()), pathSession: gateway.Multi(p.myagent()),
		pathTeam: gateway.Team(team.Teams()), pathMember: gateway.Team(team.Agents()), pathAny: gateway.Team(team.Teams()),
	})
	return routes
}

// myagent returns the session protocol, which tells clients the limits of this configuration.
func (p *process) myagent() myagent.Dialect {
	heartbeat := p.Config.Gateway.Heartbeat
	if heartbeat == 0 {
		heartbeat = gateway.DefaultHeartbeat
	}
	return myagent.New(myagent.Settings{
		ServerVersion: p.Version, SessionTTL: p.Config.Session.TTL, Heartbeat: heartbeat,
		MaxConcurrentTasks: p.Config.Pipeline.MaxConcurrent, Language: p.Config.Gateway.Language,
	})
}

// authenticator returns the authenticator of the configured credentials. Without authentication the configuration allows a
// loopback address only.
func authenticator(ctx context.Context, c config.Config, log zerolog.Logger) (auth.Authenticator, error) {
	if c.Auth.Empty() {
		return auth.Anonymous(), auth.RequireLoopback(c.Addr)
	}
	a := Auth(c.Auth)
	a.Logger = log
	return auth.New(ctx, a)
}

// Auth converts the authentication settings for package auth.
func Auth(a config.Auth) auth.Config {
	var out auth.Config
	for _, k := range a.APIKeys {
		roles := make([]auth.Role, len(k.Roles))
		for i, r := range k.Roles {
			roles[i] = auth.Role(r)
		}
		out.APIKeys = append(out.APIKeys, auth.APIKey{
			ID: k.ID, SHA256: k.SHA256.Reveal(), Subject: k.Subject, Tenant: k.Tenant, Roles: roles, Expires: k.Expires,
		})
	}
	if j := a.JWT; j.Issuer != "" {
		out.JWT = &auth.JWTConfig{
			Issuer: j.Issuer, Audience: j.Audience, JWKSFile: j.JWKSFile, JWKSURL: j.JWKSURL,
			TenantClaim: j.TenantClaim, RolesClaim: j.RolesClaim, Leeway: j.Leeway, MaxAge: j.MaxAge,
		}
	}
	return out
}

// participantLimits returns the limits of the swarm, and the names that only some principals may have. The assistant does not come
// through a gateway, so that no principal may have its name.
func participantLimits(c config.Config) participants.Config {
	l := c.Gateway.Participants
	names := maps.Clone(c.Swarm.Names)
	if c.Assistant.Enabled {
		if names == nil {
			names = map[string][]string{}
		}
		names[c.Assistant.Name] = nil
	}
	return participants.Config{
		Grace: l.Grace, Ping: l.Ping, Dead: l.Dead, Rate: l.Rate, Burst: l.Burst, Calls: l.Calls, Asks: l.Asks,
		ReadLimit: l.ReadLimit, LargeFrames: l.LargeFrames, Names: names,
	}
}
