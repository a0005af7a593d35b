package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/asp/participants"
	"github.com/waggle-dev/waggle/internal/auth"
)

// Defaults of Config.
const (
	// defaultReadLimit holds a long document pasted into a chat; larger things are
	// passed by reference.
	defaultReadLimit = 256 << 10
	// defaultHandshake is the time that OWASP and common Go servers allow for a header.
	defaultHandshake = 5 * time.Second
	// defaultFirstMessage gives a client on a slow network time for two round trips and
	// the fetch of a token.
	defaultFirstMessage = 10 * time.Second
	// defaultMessage lets a modem at 128 kbit/s send the largest message.
	defaultMessage = 15 * time.Second
	// defaultReady is as long as the lease of a dead worker: a client that has waited
	// longer had better reconnect.
	defaultReady = 30 * time.Second
	// defaultPing is below the 30 s after which many proxies cut an idle connection.
	defaultPing = 25 * time.Second
	// defaultPong is as long as defaultStall: a client that reads nothing cannot
	// answer pings either, and must not be cut earlier for that. With defaultPing it
	// makes 55 s: the MyAgent protocol drops a connection after 60 s of silence.
	defaultPong = 30 * time.Second
	// defaultStall spares a laptop that changes networks.
	defaultStall = 30 * time.Second
	// defaultQueue holds about 3,000 frames of ordinary size.
	defaultQueue = 1 << 20
	// defaultRate and defaultBurst are far above the speed of a typing person, and a
	// tenth of the messages that one core decodes.
	defaultRate  = 20
	defaultBurst = 40
	// defaultConnections fit in 200 MB while idle and below the usual limit of
	// 20,000 descriptors.
	defaultConnections = 10_000
	// defaultPerPrincipal suffices for a person with many tabs, or for a small server.
	defaultPerPrincipal = 200
	// defaultSpread keeps 10,000 clients from reconnecting within one second.
	defaultSpread = 5 * time.Second
	// DefaultHeartbeat is the interval that the MyAgent protocol specifies.
	DefaultHeartbeat = 30 * time.Second
	// defaultSessions suffices for a person with many conversations in one window. With
	// all of them busy the queue still holds about 50 frames of each.
	defaultSessions = 64
	// defaultAcks bounds the events that a client sees twice after a crash of its gateway,
	// and merges the acknowledgements of all pieces of a text into one write.
	defaultAcks = 5 * time.Second
)

// Config says where a gateway listens, and limits its clients. A field that is zero has its
// default.
type Config struct {
	Addr string // host:port to listen on; port 0 = any free one

	// AllowedOrigins are the web pages that may connect, as exact origins
	// ("https://app.example.com"). Requests of other programs have no Origin and are not
	// concerned. A gateway on a loopback address that asks for credentials also accepts pages
	// that were served from loopback. One that asks for none accepts pages of its own origin, and
	// those that send StartToken.
	AllowedOrigins []string
	StartToken     string // of a gateway without authentication; empty = it accepts no other pages
	// AllowedHosts are the names under which clients reach this gateway, with a port
	// ("chat.example.com:8443") or for any port ("chat.example.com"). A gateway on a
	// loopback address also accepts loopback names. Without any, a gateway that
	// asks for credentials accepts every name.
	AllowedHosts []string

	// TrustedProxies are the networks (10.0.0.0/8) of proxies whose header ForwardedHeader names the
	// client. It is X-Forwarded-For by default, or Forwarded. With ProxyProtocol they begin every
	// connection with a header of the PROXY protocol.
	TrustedProxies  []string
	ForwardedHeader string
	ProxyProtocol   bool

	ReadLimit        int64         // largest message of a client in bytes, default 256 KiB
	HandshakeTimeout time.Duration // for the request's header, default 5 s
	FirstMessage     time.Duration // for credentials by first message, default 10 s
	MessageTimeout   time.Duration // for a whole message, counted from its first byte, default 15 s
	ReadyTimeout     time.Duration // how long a socket waits for services to start, default 30 s
	PingInterval     time.Duration // how often an idle socket is pinged, default 25 s
	PongTimeout      time.Duration // for any data after a ping, default 30 s
	WriteStall       time.Duration // how long a socket may accept no data, default 30 s
	QueueBytes       int           // outbound bytes that may wait per socket, default 1 MiB

	MessageRate    float64 // messages per second and socket, and as many pings and pongs, default 20
	MessageBurst   int     // messages that may come at once, default 40
	MaxConnections int     // sockets of authenticated clients, default 10,000; 5 % more, from 16 to 500, may be unauthenticated
	PerPrincipal   int     // sockets per principal, default 200; anonymous ones are not counted
	PerIP          int     // sockets per address, default 50 except for loopback and private addresses
	HandshakeRate  float64 // handshakes per second and address, default 10 with the same exception

	RequestRate float64 // HTTP requests per second of a principal and of an address, default 100 except for loopback and private addresses
	Requests    int     // of them at once, default 64 with the same exception

	Inboxes int // new clients of the swarm at once, of a principal, default 2,000; one more every ten seconds. Anonymous ones are not counted

	DrainSpread  time.Duration // over which Drain spreads the closing of sockets, default 5 s
	StreamMaxAge time.Duration // after which a stream of events ends, so that its client comes back; 0 = unlimited

	// Options of sockets that hold several sessions.
	Heartbeat         time.Duration // between two heartbeats of a session, default 30 s
	SessionsPerSocket int           // default 64
	AckInterval       time.Duration // how long an acknowledgement waits for a higher one, default 5 s

	Participants participants.Config // of the clients, agents and services of the swarm
	// Legacy are more addresses to listen on. Default none.
	Legacy []Listener
}

// Listener is another address of a gateway. It serves the route of a single path of Deps.Routes
// under every path, and the routes of several paths under their own.
type Listener struct {
	Addr  string
	Paths []string
}

func (c Config) withDefaults() Config {
	c.ReadLimit = cmp.Or(c.ReadLimit, defaultReadLimit)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, defaultHandshake)
	c.FirstMessage = cmp.Or(c.FirstMessage, defaultFirstMessage)
	c.MessageTimeout = cmp.Or(c.MessageTimeout, defaultMessage)
	c.ReadyTimeout = cmp.Or(c.ReadyTimeout, defaultReady)
	c.PingInterval = cmp.Or(c.PingInterval, defaultPing)
	c.PongTimeout = cmp.Or(c.PongTimeout, defaultPong)
	c.WriteStall = cmp.Or(c.WriteStall, defaultStall)
	c.QueueBytes = cmp.Or(c.QueueBytes, defaultQueue)
	c.MessageRate = cmp.Or(c.MessageRate, defaultRate)
	c.MessageBurst = cmp.Or(c.MessageBurst, defaultBurst)
	c.MaxConnections = cmp.Or(c.MaxConnections, defaultConnections)
	c.PerPrincipal = cmp.Or(c.PerPrincipal, defaultPerPrincipal)
	c.DrainSpread = cmp.Or(c.DrainSpread, defaultSpread)
	c.Heartbeat = cmp.Or(c.Heartbeat, DefaultHeartbeat)
	c.SessionsPerSocket = cmp.Or(c.SessionsPerSocket, defaultSessions)
	c.AckInterval = cmp.Or(c.AckInterval, defaultAcks)
	c.Participants = c.Participants.WithDefaults()
	return c
}

// check returns an error that names the option which cannot be used.
func (c Config) check() error {
	for _, f := range []struct {
		name string
		bad  bool
	}{
		{"read_limit", c.ReadLimit < 0},
		{"queue_bytes", c.QueueBytes < 0},
		{"handshake_timeout", c.HandshakeTimeout < 0},
		{"first_message", c.FirstMessage < 0},
		{"message_timeout", c.MessageTimeout < 0},
		{"ready_timeout", c.ReadyTimeout < 0},
		{"ping_interval", c.PingInterval < 0},
		{"pong_timeout", c.PongTimeout < 0},
		{"write_stall", c.WriteStall < 0},
		{"message_rate", c.MessageRate < 0},
		{"message_burst", c.MessageBurst < 0},
		{"max_connections", c.MaxConnections < 0},
		{"per_principal", c.PerPrincipal < 0},
		{"per_ip", c.PerIP < 0},
		{"handshake_rate", c.HandshakeRate < 0},
		{"request_rate", c.RequestRate < 0},
		{"requests", c.Requests < 0},
		{"inboxes", c.Inboxes < 0},
		{"drain_spread", c.DrainSpread < 0},
		{"stream_max_age", c.StreamMaxAge < 0},
		{"heartbeat", c.Heartbeat < 0},
		{"sessions_per_socket", c.SessionsPerSocket < 0},
		{"ack_interval", c.AckInterval < 0},
	} {
		if f.bad {
			return fmt.Errorf("gateway.%s must not be negative", f.name)
		}
	}
	if c.Addr == "" {
		return errors.New("addr is empty: specify where the gateway listens, for example 127.0.0.1:9000")
	}
	if c.ProxyProtocol && len(c.TrustedProxies) == 0 {
		return errors.New("gateway.proxy_protocol needs gateway.trusted_proxies: other peers may not name a client")
	}
	_, err := c.proxies()
	return errors.Join(c.Participants.Check(), c.names().Check(), err)
}

func (c Config) proxies() (*admission.Proxies, error) {
	return admission.NewProxies(c.TrustedProxies, c.ForwardedHeader)
}

// names returns the names of the configuration.
func (c Config) names() admission.Names {
	return admission.Names{Origins: c.AllowedOrigins, Hosts: c.AllowedHosts, Token: c.StartToken}
}

// requireLoopback returns an error if another machine can connect.
func (c Config) requireLoopback() error {
	errs := []error{auth.RequireLoopback(c.Addr)}
	for _, l := range c.Legacy {
		errs = append(errs, auth.RequireLoopback(l.Addr))
	}
	return errors.Join(errs...)
}
