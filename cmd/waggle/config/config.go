// Package config holds every setting of the waggle binary: its meaning, its default, its sources and its valid values.
//
// Sources, strongest first: flags, environment, YAML file or files, defaults. The reference page docs/CONFIGURATION.md is
// generated from the tags in this file.
//
// All settings are one struct, so that key, variable, check and documentation of a setting cannot drift apart. Every scalar
// has an environment variable. Lists of structures exist in the file only, because a variable cannot hold them readably.
package config

//go:generate go run ./configdoc -out ../../../docs/CONFIGURATION.md

import (
	"time"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/sandbox"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Config holds all settings. The zero value is not usable: start with Default or Load.
type Config struct {
	Addr      string        `yaml:"addr" doc:"Where the gateway listens (WebSocket, HTTP, health). A process without the gateway role listens only if this is set, and then serves health."`
	Legacy    bool          `yaml:"legacy" doc:"Also listen where the original servers of the protocols do, on the host of addr: fills in every address of gateway.legacy that is empty; \"off\" there omits one."`
	Data      string        `yaml:"data" doc:"Folder of the embedded NATS server's files (\"waggle up\")."`
	Workspace string        `yaml:"workspace" doc:"Folder that the built-in file tools may read and write. Created, with a first file in it, if it does not exist."`
	Model     string        `yaml:"model" doc:"Which model answers: \"demo\" (offline, deterministic), or PROVIDER:NAME, such as \"openai:gpt-4.1-mini\" (docs/MODELS.md)."`
	Profile   string        `yaml:"profile" doc:"Durability of the embedded NATS server: \"standard\" writes through to the disk every 10 seconds, so that a power failure may lose as much; \"strict\" before every acknowledgement. Killing a process loses nothing."`
	Shutdown  time.Duration `yaml:"shutdown" doc:"How long work in progress may take to finish after SIGTERM. A second signal stops immediately."`
	Log       Log           `yaml:"log"`
	Telemetry Telemetry     `yaml:"telemetry"`
	NATS      NATS          `yaml:"nats"`
	Providers Providers     `yaml:"providers"`
	Auth      Auth          `yaml:"auth"`
	Access    Access        `yaml:"access"`
	Gateway   Gateway       `yaml:"gateway"`
	Console   Console       `yaml:"console"`
	Session   Session       `yaml:"session"`
	Pipeline  Pipeline      `yaml:"pipeline"`
	Task      Task          `yaml:"task"`
	Swarm     Swarm         `yaml:"swarm"`
	Assistant Assistant     `yaml:"assistant"`
	Worker    Worker        `yaml:"worker"`
	Models    Models        `yaml:"models"`
	Tools     Tools         `yaml:"tools"`
	Teams     []Team        `yaml:"teams"`
	Budget    Budget        `yaml:"budget"`
	Quota     Quota         `yaml:"quota"`
	Audit     Audit         `yaml:"audit"`
	Signing   Signing       `yaml:"signing"`
	Cells     Cells         `yaml:"cells"`
}

// Console sets the web console, which the gateway serves next to its protocols.
type Console struct {
	Enabled bool   `yaml:"enabled" doc:"Serve the web console at /. The page shows only what the API returns to the signed-in user."`
	Plug    string `yaml:"plug" doc:"Address where \"waggle demo\", which sets this itself, lets the console kill this process. Only for \"waggle up\" on a loopback address without authentication."`
}

// Cells places the process in an installation of several NATS clusters.
type Cells struct {
	Name    string `yaml:"name" doc:"Name of the cell that this process belongs to. Without it the installation has one cell, and the other settings of cells are ignored."`
	Control string `yaml:"control" doc:"NATS server of the control cluster, or several separated by commas: it holds the cell of each tenant and the addresses of all gateways (role gateway, \"waggle cells\")."`
	Default string `yaml:"default" doc:"Cell of tenants that are not in the directory. It must be the same in all cells."`
	Address string `yaml:"address" doc:"URL under which gateways of other cells reach this one (http://10.0.1.7:9000). Empty = addr, which then has to name a host. List the other cells' gateways in gateway.trusted_proxies, because their requests name the client."`
	Creds   string `yaml:"creds" doc:"Credentials file (JWT and key) for the control cluster."`
	NKey    string `yaml:"nkey" doc:"File with an nkey seed for the control cluster."`
	TLSCA   string `yaml:"tls_ca" doc:"PEM file of the authority that signed the control cluster's certificate."`
	TLSCert string `yaml:"tls_cert" doc:"PEM file of the client certificate for the control cluster."`
	TLSKey  string `yaml:"tls_key" doc:"PEM file of the client certificate's key."`
}

// Signing sets the keys with which gateways sign the commands of clients, and services verify them.
type Signing struct {
	KeyFile       string   `yaml:"key_file" doc:"File with the seed of the key that signs the commands of clients (role gateway, which does not start without it). \"waggle keys\" makes it as \"signing.seed\"; \"waggle up\" without any makes one in its data folder. A replaced file takes effect within seconds."`
	PublicKeys    []string `yaml:"public_keys" doc:"Public keys of the gateways: services handle commands of people that one of them has signed, and refuse all others. A gateway's own process accepts its key as well."`
	PublicKeyFile string   `yaml:"public_key_file" doc:"File with more such keys, one a line: \"signing.pub\" of \"waggle keys\". A replaced file takes effect within seconds. Without any public key no service starts."`
}

// Log sets the level and the format of logs. Logs go to standard error.
type Log struct {
	Level  string `yaml:"level" doc:"trace, debug, info, warn, error or disabled."`
	Format string `yaml:"format" doc:"\"json\", \"console\", or \"auto\": console on a terminal, else json."`
}

// Telemetry sets where operators look into the process.
type Telemetry struct {
	Addr string `yaml:"addr" doc:"Where metrics (/metrics) and profiles (/debug/pprof/) are served, without authentication: an address that only operators can reach. Empty = nowhere; with \"waggle up\" 127.0.0.1:9464, or any free port of 127.0.0.1 where addr is not the default. \"off\" = nowhere."`
}

// NATS sets the address of the bus, or the embedded server.
type NATS struct {
	URL            string        `yaml:"url" env:"WAGGLE_NATS" doc:"NATS server, or several separated by commas (\"waggle serve\", \"tail\", \"doctor\")."`
	Addr           string        `yaml:"addr" doc:"Where the embedded NATS server listens (\"waggle up\"). It asks for keys (data/nats-keys) and does not encrypt, so only a loopback address is accepted."`
	Creds          string        `yaml:"creds" doc:"Credentials file (JWT and key) for NATS."`
	NKey           string        `yaml:"nkey" doc:"File with an nkey seed for NATS."`
	TLSCA          string        `yaml:"tls_ca" doc:"PEM file of the authority that signed the NATS server's certificate."`
	TLSCert        string        `yaml:"tls_cert" doc:"PEM file of the client certificate for NATS."`
	TLSKey         string        `yaml:"tls_key" doc:"PEM file of the client certificate's key."`
	Bootstrap      string        `yaml:"bootstrap" doc:"Who creates the streams: \"auto\" = every process creates and repairs missing ones; \"verify\" = processes wait until \"waggle bootstrap\" has created them. With users per role it has to be verify."`
	Partitions     int           `yaml:"partitions" doc:"Parts of the event log and of each service's commands: 16, 64 or 256. Every process of the installation needs the same number. It cannot be changed once the streams exist. More parts spread over more NATS servers, and cost more when idle."`
	Replicas       int           `yaml:"replicas" doc:"Copies of every stream: 1, 3 or 5. More than 1 needs a NATS cluster."`
	EventMaxAge    time.Duration `yaml:"event_max_age" doc:"How long events are kept; 0 = 30 days."`
	ObjectMaxBytes int64         `yaml:"object_max_bytes" doc:"Size limit in bytes of data that does not fit into events; at the limit more of it is refused until the oldest expires. NATS reserves it; 0 = no limit."`
	EventMaxBytes  int64         `yaml:"event_max_bytes" doc:"Size limit of each event stream (nats.partitions) in bytes; the oldest events are dropped first. 0 = no limit except the age."`
}

// Auth lists the credentials of clients. Empty means no authentication, which Validate refuses unless the gateway listens on
// a loopback address.
type Auth struct {
	APIKeys []APIKey `yaml:"api_keys"`
	JWT     JWT      `yaml:"jwt"`
	OIDC    OIDC     `yaml:"oidc"`
}

// Tokens of an issuer.
const (
	TokenAccess = "access"
	TokenID     = "id"
)

// OIDC lets people sign in to the console at the issuer of the JWTs.
type OIDC struct {
	ClientID string   `yaml:"client_id" doc:"Client of the console at auth.jwt.issuer: a public one, for the code flow with PKCE, with the redirect address https://GATEWAY/login/callback. Setting it enables the sign-in."`
	Scopes   []string `yaml:"scopes" doc:"Scopes that the console requests. Some issuers need offline_access for a refresh token."`
	Token    string   `yaml:"token" doc:"Which token the gateway receives, and auth.jwt verifies: access or id. The audience of an id token is the client."`
}

// APIKey is one static key. The configuration never holds the key itself.
type APIKey struct {
	ID      string    `yaml:"id" doc:"Name of the key for logs; unique."`
	SHA256  Secret    `yaml:"sha256" doc:"SHA-256 of the key in hex (printf %s KEY | sha256sum)."`
	Subject string    `yaml:"subject" doc:"Who holds the key; default: its id."`
	Tenant  string    `yaml:"tenant" doc:"Tenant whose data the holder sees."`
	Roles   []string  `yaml:"roles" doc:"user, operator, viewer (may watch only), agent or service; default: user."`
	Expires time.Time `yaml:"expires,omitempty" doc:"When the key expires (RFC 3339); never if absent."`
}

// JWT accepts tokens of an identity provider.
type JWT struct {
	Issuer      string        `yaml:"issuer" doc:"Required \"iss\" of a token. Setting it enables JWTs."`
	Audience    string        `yaml:"audience" doc:"Required \"aud\" of a token."`
	JWKSFile    string        `yaml:"jwks_file" doc:"File with the issuer's public keys."`
	JWKSURL     string        `yaml:"jwks_url" doc:"URL of the issuer's public keys; instead of jwks_file."`
	TenantClaim string        `yaml:"tenant_claim" doc:"Claim that names the tenant."`
	RolesClaim  string        `yaml:"roles_claim" doc:"Claim that lists the roles."`
	Leeway      time.Duration `yaml:"leeway" doc:"Accepted clock difference to the issuer."`
	MaxAge      time.Duration `yaml:"max_age" doc:"How long after its \"iat\" a token is accepted, even if its \"exp\" is later."`
}

// Gateway limits clients. Zero means the gateway's own default.
type Gateway struct {
	AllowedOrigins   []string      `yaml:"allowed_origins" doc:"Web pages that may connect, as exact origins (https://app.example.com). \"null\" and \"file://\" are pages that are opened from a disk; \"null\" is also the page of any site in a sandboxed frame. On a loopback address with authentication, pages served from loopback may too; without authentication the gateway's own and those that send the start token."`
	AllowedHosts     []string      `yaml:"allowed_hosts" doc:"Names under which clients reach the gateway, with a port or for any port. Empty = loopback names, or every name with authentication."`
	TrustedProxies   []string      `yaml:"trusted_proxies" doc:"Networks (10.0.0.0/8) of proxies that name their client in forwarded_header: the last address there that is not a proxy's is the client's. Limits per address and the audit log use it. Empty = trust no proxy."`
	ForwardedHeader  string        `yaml:"forwarded_header" doc:"Header in which trusted proxies name the client: X-Forwarded-For or Forwarded. The other one is ignored, because proxies forward it unchecked."`
	ProxyProtocol    bool          `yaml:"proxy_protocol" doc:"Trusted proxies begin each connection with a header of the PROXY protocol (version 1 or 2). Connections of other peers begin with HTTP."`
	ReadLimit        int64         `yaml:"read_limit" doc:"Largest message of a client in bytes; 0 = 256 KiB."`
	HandshakeTimeout time.Duration `yaml:"handshake_timeout" doc:"Time for a request's header; 0 = 5 s."`
	FirstMessage     time.Duration `yaml:"first_message" doc:"Time for the credentials if the client sends them as its first message; 0 = 10 s."`
	MessageTimeout   time.Duration `yaml:"message_timeout" doc:"Time from the first byte of a message to its last; 0 = 15 s."`
	ReadyTimeout     time.Duration `yaml:"ready_timeout" doc:"How long a socket waits for available services; 0 = 30 s."`
	PingInterval     time.Duration `yaml:"ping_interval" doc:"How often an idle socket is pinged; 0 = 25 s."`
	PongTimeout      time.Duration `yaml:"pong_timeout" doc:"Time for any response after a ping; 0 = 30 s."`
	WriteStall       time.Duration `yaml:"write_stall" doc:"How long a socket may accept nothing before it is cut off; 0 = 30 s."`
	QueueBytes       int           `yaml:"queue_bytes" doc:"Outbound bytes that may wait per socket before it reads the log at its own pace; 0 = 1 MiB."`
	MessageRate      float64       `yaml:"message_rate" doc:"Frames per second and socket, control frames included; 0 = 20."`
	MessageBurst     int           `yaml:"message_burst" doc:"Burst of frames on a socket; 0 = 40."`
	MaxConnections   int           `yaml:"max_connections" doc:"Sockets of authenticated clients; 0 = 10000. In addition 5 % of it, from 16 to 500, may be connected and not authenticated yet; beyond that a new one displaces the oldest of them."`
	PerPrincipal     int           `yaml:"per_principal" doc:"Sockets per principal; 0 = 200. Anonymous ones are not counted."`
	PerIP            int           `yaml:"per_ip" doc:"Sockets per address; 0 = 50, loopback and private addresses excepted."`
	HandshakeRate    float64       `yaml:"handshake_rate" doc:"Handshakes per second and address; 0 = 10, with the same exception."`
	RequestRate      float64       `yaml:"request_rate" doc:"HTTP requests per second of a principal and of an address; 0 = 100, loopback and private addresses excepted. Without authentication principals have no limit unless it is set."`
	Requests         int           `yaml:"requests" doc:"Concurrent HTTP requests of a principal and of an address; 0 = 64, with the same exceptions."`
	Heartbeat        time.Duration `yaml:"heartbeat" doc:"Interval of the heartbeats of the session protocol; 0 = 30 s."`
	Language         string        `yaml:"language" doc:"Language of the session protocol's texts for people if the client names none: zh_CN or en_US. Empty = zh_CN, the protocol's own."`
	SocketSessions   int           `yaml:"sessions_per_socket" doc:"Sessions that one socket may hold, where the protocol allows several; 0 = 64."`
	StreamMaxAge     time.Duration `yaml:"stream_max_age" doc:"A stream of server-sent events ends after this time, and its client resumes; 0 = unlimited. For meshes that cut old requests."`
	DrainSpread      time.Duration `yaml:"drain_spread" doc:"On shutdown, sockets are closed spread over this time; 0 = 5 s."`
	ASPStatuses      string        `yaml:"asp_statuses" doc:"Words of the member status of agents, services, clients and MCP servers in the Agent Swarm Protocol: sdk (online, offline, busy, error, initializing) or document (active, inactive, busy, error, maintenance). The member state has the other word. A participant that uses a word of either vocabulary gets answers in that one."`
	ASPMessages      string        `yaml:"asp_messages" doc:"What the member message of task.notification is in the Agent Swarm Protocol: text (the message of the agent, or the text in it; the member notification has the whole of an object) or object (what the agent gave, whatever it is)."`
	Participants     Participants  `yaml:"peers"`
	Legacy           Legacy        `yaml:"legacy"`
}

// Participants limits the clients, agents and services of the swarm. Zero means the gateway's
// own default.
type Participants struct {
	Grace time.Duration `yaml:"grace" doc:"How long an agent, service or client of the swarm keeps its presence after its socket has ended, and an agent its tasks; 0 = 15 s."`
	Ping  time.Duration `yaml:"ping" doc:"How often they are pinged; 0 = 15 s."`
	Dead  time.Duration `yaml:"dead" doc:"How long they may be silent before their socket is closed; 0 = 45 s."`
	Rate  float64       `yaml:"rate" doc:"Frames per second of one of them; beyond, the gateway reads it more slowly. 0 = 200."`
	Burst int           `yaml:"burst" doc:"Burst of frames of one of them; 0 = 400."`
	Calls int           `yaml:"calls" doc:"Concurrent calls of one connection of a service; 0 = 256."`
	Asks  int           `yaml:"asks" doc:"Concurrent tool calls of one connection outside of tasks; 0 = 32."`

	ReadLimit   int64 `yaml:"read_limit" doc:"Largest frame of one of them in bytes, 8 MiB at most; 0 = 1 MiB. A larger one, up to 16 MiB, is skipped: a result fails its task or its call, anything else is refused. Beyond 16 MiB the socket is closed with 1009."`
	LargeFrames int   `yaml:"large_frames" doc:"Frames larger than gateway.read_limit that one gateway reads or handles concurrently; further ones wait. Each briefly takes up to seven times its size in memory; 0 = 32."`
}

// Legacy holds additional addresses of the gateway, the defaults of the original servers, for programs whose addresses
// cannot be changed. Off by default.
type Legacy struct {
	Client  string `yaml:"client" doc:"Another address for clients of the swarm, whatever their path (127.0.0.1:3001); empty = none."`
	Agent   string `yaml:"agent" doc:"Another address for agents of the swarm (127.0.0.1:3000); empty = none."`
	Service string `yaml:"service" doc:"Another address for services of the swarm (127.0.0.1:3002); empty = none."`
	MyAgent string `yaml:"myagent" doc:"Another address for the session protocol (MyAgent), whatever the path (127.0.0.1:8080); empty = none."`
	ORBIT   string `yaml:"orbit" doc:"Another address for the chat protocol (ORBIT), whatever the path (127.0.0.1:9000); empty = none."`
	Team    string `yaml:"team" doc:"Another address for teams, under /ws/agent-team/{id} and /ws/agent/{id} (127.0.0.1:8000); empty = none."`
}

// Session sets the lifetime of sessions.
type Session struct {
	TTL          time.Duration `yaml:"ttl" doc:"How long a session outlives its last event."`
	StateKeys    []Secret      `yaml:"state_keys" doc:"Keys of exported states, each of 32 characters or more. The first one signs; a state signed with any of them is accepted. Installations that import each other's sessions share a key. Without a key states are exported unsigned, and none is imported."`
	StateKeyFile string        `yaml:"state_key_file" doc:"File with such keys, one a line; instead of state_keys. \"waggle up\" without any makes \"state.key\" in its data folder."`
}

// Pipeline sets the limits of planned runs. Clients may ask for less.
type Pipeline struct {
	ConfirmPlan    bool          `yaml:"confirm_plan" doc:"Ask before a plan runs, unless the client says otherwise."`
	ConfirmTimeout time.Duration `yaml:"confirm_timeout" doc:"How long a question to people stays open."`
	MaxConcurrent  int           `yaml:"max_concurrent" doc:"Concurrent steps of one run."`
	TaskTimeout    time.Duration `yaml:"task_timeout" doc:"Time limit of one attempt at a step."`
	TaskAttempts   int           `yaml:"task_attempts" doc:"Attempts at a step before it fails."`
	RetryBackoff   time.Duration `yaml:"retry_backoff" doc:"Pause before the second attempt; it doubles before each further one, with 10 % jitter."`
	OnBusy         string        `yaml:"on_busy" doc:"How to handle a message during an active run: \"reject\", \"enqueue\" or \"interrupt\". ORBIT always enqueues."`
}

// Task sets the limits and times of tasks. The creator of a task may ask for other times.
type Task struct {
	QueueTimeout time.Duration `yaml:"queue_timeout" doc:"How long a task of the swarm waits for an agent before it fails."`
	Timeout      time.Duration `yaml:"timeout" doc:"How long a task of the swarm may take in total; 0 = no limit."`
	AskTimeout   time.Duration `yaml:"ask_timeout" doc:"How long an agent's question to a client stays open."`
	Lease        time.Duration `yaml:"lease" doc:"After this silence the service checks whether the agent of a task is still connected. Usually it notices a lost agent immediately."`
	Pause        time.Duration `yaml:"pause" doc:"How long an agent that lost a task does not get it again, unless it reconnects."`
	Tries        int           `yaml:"tries" doc:"How many agents may try a task, one after the other, before it fails."`
	MaxDepth     int           `yaml:"max_depth" doc:"How deep tasks may be nested that agents give to other agents."`
	Keep         time.Duration `yaml:"keep" doc:"How long a message from one client to another waits for a disconnected one."`
	Calls        int           `yaml:"calls" doc:"Concurrent tool calls of tasks of one process; 0 = 16."`
}

// Swarm sets who is who among agents, services and clients.
type Swarm struct {
	Names map[string][]string `yaml:"names,omitempty" doc:"Names and ids that only some principals may register, in any case, each with the subjects of these principals. The name of the assistant is always reserved for it."`
}

// Assistant is the agent of the swarm that every process with the worker role offers: it does tasks with the model.
type Assistant struct {
	Enabled      bool     `yaml:"enabled" doc:"Offer the model as an agent of the swarm."`
	Name         string   `yaml:"name" doc:"The name under which clients address it."`
	Capabilities []string `yaml:"capabilities" doc:"Its capabilities."`
	Description  string   `yaml:"description" doc:"Its description in lists of agents."`
	Concurrency  int      `yaml:"concurrency" doc:"Accepted tasks of one process; 0 = 64. worker.concurrency limits how many run."`
}

// Models holds facts about models, besides their names.
type Models struct {
	Fallbacks []string `yaml:"fallbacks" doc:"Models to ask in this order when the service of the model is overloaded, down, or its account is exhausted, such as \"anthropic:claude-sonnet-4-5\". The log and the user are told. A member of a team whose definition names a model has no fallbacks."`
	Prices    []Price  `yaml:"prices"`
}

// Price is the price of one model. Waggle shows no cost for a model without a price.
type Price struct {
	Model  string  `yaml:"model" doc:"The model, as in the setting \"model\" (\"openai:gpt-4.1-mini\") or as the provider calls it in its answers; unique."`
	Input  float64 `yaml:"input" doc:"US dollars for a million input tokens."`
	Output float64 `yaml:"output" doc:"US dollars for a million output tokens, reasoning included."`

	Cached     *float64 `yaml:"cached" doc:"US dollars for a million input tokens that the provider reads from its cache; absent = as input."`
	CacheWrite *float64 `yaml:"cache_write" doc:"US dollars for a million input tokens that the provider writes to its cache; absent = as input."`
}

// Worker limits the workers. Zero means the worker's default.
type Worker struct {
	Concurrency  int           `yaml:"concurrency" doc:"Concurrent jobs of one worker process; 0 = 16."`
	MaxAttempts  int           `yaml:"max_attempts" doc:"Attempts at one job, by any worker, before it fails; 0 = 3."`
	MaxRounds    int           `yaml:"max_rounds" doc:"Messages of the model in one run; 0 = 16."`
	MaxTokens    int           `yaml:"max_tokens" doc:"Tokens per message of the model; 0 = the provider's default."`
	ModelTries   int           `yaml:"model_tries" doc:"Requests to the model for one message before it fails: a failed or overloaded provider is retried after 0.5 s, 1 s, 2 s and so on, never earlier than its Retry-After; 0 = 8, 1 = no retry."`
	RetryTime    time.Duration `yaml:"retry_time" doc:"How long one job (the answer of a chat, a plan, one try at a step) retries a model without any answer in between; 0 = 30 s."`
	RunRetryTime time.Duration `yaml:"run_retry_time" doc:"The same for a whole run, whose failed plan and steps are retried, too. Use the same value in the roles worker and pipeline; 0 = 1 min."`
	ToolTimeout  time.Duration `yaml:"tool_timeout" doc:"Time limit of one tool call; 0 = 60 s."`
	JobTimeout   time.Duration `yaml:"job_timeout" doc:"Time limit of one attempt at a job; 0 = 15 min."`
	DeltaPause   time.Duration `yaml:"delta_pause" doc:"How long pieces of a streamed text are collected into one event: fewer events cost less everywhere, and viewers see text this much later. The first piece of a text never waits, and the end of the text ends the wait; 0 = each piece immediately."`
	Capabilities []string      `yaml:"capabilities" doc:"Capabilities that steps of plans may require of this worker; empty = \"general\"."`
	System       string        `yaml:"system" doc:"System prompt; empty = the built-in one."`
}

// Tools selects the tools that the model is offered.
type Tools struct {
	Builtin        bool     `yaml:"builtin" doc:"Offer the built-in file tools on the workspace."`
	MaxCalls       int      `yaml:"max_calls" doc:"Concurrent calls; 0 = 96."`
	MaxTenantCalls int      `yaml:"max_tenant_calls" doc:"Concurrent calls of one tenant, below max_calls so that its hanging calls leave room for others; 0 = two thirds of max_calls."`
	Sandbox        string   `yaml:"sandbox" doc:"How programs of servers are confined: \"prefer\" uses every layer that the kernel has, \"require\" refuses to start a program if a layer that matters is missing, \"off\" starts programs with all rights of waggle's user. \"waggle doctor\" names missing layers."`
	Services       []string `yaml:"services" doc:"Services of the swarm whose tools models are offered, by id or name; \"*\" = all. Empty = none. Agents call the tools of all services of their tenant."`
	Taint          bool     `yaml:"taint" doc:"After a run has read untrusted output, its calls that may change something need an approval, even of tools with approval never. Members of a team pass the taint on with their messages."`

	BuiltinApproval string        `yaml:"builtin_approval" doc:"Approval of the built-in file tools: always, writes or never. They reach the tenant's own folder only."`
	ServiceRules    []ServiceRule `yaml:"service_rules"`

	Servers []ToolServer `yaml:"servers"`
}

// ToolServer is one MCP server: a command that communicates over its standard input and output, or the URL of a streamable
// HTTP endpoint.
type ToolServer struct {
	Name         string            `yaml:"name" doc:"Prefix of its tools' names: letters, digits, _ and -; unique."`
	Command      []string          `yaml:"command,omitempty" doc:"Program and arguments of a stdio server. In a sandbox the program may read the files and folders that it names, and the folder of a script. Keep secrets out of it: use env."`
	Env          map[string]Secret `yaml:"env,omitempty" doc:"Environment of the program, in addition to PATH, HOME and the like."`
	Dir          string            `yaml:"dir,omitempty" doc:"Working folder of the program, which it may read and write. Without it, a program in a sandbox has a private folder that is deleted with it, any other the folder of waggle. A program of a root process runs as the owner of dir, and as user 65534 if that is root."`
	Sandbox      string            `yaml:"sandbox,omitempty" doc:"Overrides tools.sandbox for this program."`
	Network      bool              `yaml:"network,omitempty" doc:"Let the program connect: TCP to ports 80, 443 and network_ports of any address, loopback included, and UDP to any port. It may never listen."`
	NetworkPorts []int             `yaml:"network_ports,omitempty" doc:"Further TCP ports that the program may connect to."`
	URL          string            `yaml:"url,omitempty" doc:"Endpoint of an HTTP server, streamable or of the older transport (HTTP with SSE); instead of command."`
	Headers      map[string]Secret `yaml:"headers,omitempty" doc:"Headers sent to the HTTP server."`
	OAuth        ToolOAuth         `yaml:"oauth,omitempty"`
	Timeout      time.Duration     `yaml:"timeout,omitempty" doc:"Time limit of one call; 0 = 60 s."`
	OutputCap    int               `yaml:"output_cap,omitempty" doc:"Bytes of output kept per call; 0 = 128 KiB."`
	ReadOnly     []string          `yaml:"read_only,omitempty" doc:"Tools that change nothing, in addition to those that declare it themselves."`
	Idempotent   []string          `yaml:"idempotent,omitempty" doc:"Tools that may run twice with the same arguments. Only these, and those that declare it themselves, are retried after a crash."`
	IgnoreHints  bool              `yaml:"ignore_hints,omitempty" doc:"Ignore the server's own hints: only read_only and idempotent count."`
	KeepOnCancel bool              `yaml:"keep_on_cancel,omitempty" doc:"Trust the program to stop a cancelled call; otherwise it is restarted if it does not."`
	Tenants      []string          `yaml:"tenants,omitempty" doc:"Tenants that may use it; empty = all."`

	PerTenant     bool          `yaml:"per_tenant,omitempty" doc:"Start a program for each tenant, with its first call, in a separate folder within dir. One more program lists the tools and gets no calls."`
	PerTenantMax  int           `yaml:"per_tenant_max,omitempty" doc:"Concurrent tenant programs; a further one replaces the one that has been idle longest. 0 = 32."`
	PerTenantRest time.Duration `yaml:"per_tenant_rest,omitempty" doc:"Idle time after which a tenant's program is stopped; 0 = 10 min."`

	Paths  ToolPaths  `yaml:"paths,omitempty"`
	Limits ToolLimits `yaml:"limits,omitempty"`

	Approval    string            `yaml:"approval,omitempty" doc:"Which calls need an approval: always, writes (all tools but those that change nothing) or never. Empty = writes. No request and no definition of a team can loosen it."`
	Approvals   map[string]string `yaml:"approvals,omitempty" doc:"The same for single tools, by the server's names."`
	TrustHints  bool              `yaml:"trust_hints,omitempty" doc:"Trust the server's hints about tools that change nothing, in addition to read_only. Otherwise every other tool counts as writing."`
	Untrusted   *bool             `yaml:"untrusted,omitempty" doc:"Whether its output may contain instructions of strangers. By default true for servers with a url or with network."`
	TaintExempt []string          `yaml:"taint_exempt,omitempty" doc:"Tools for which approval never holds even after untrusted output."`
	Agents      *bool             `yaml:"agents,omitempty" doc:"Let agents of the swarm call the tools that need an approval. Agents cannot ask, so their other calls are refused. By default they may call tools with readOnlyHint, unless approval is always; false = none."`
}

// ServiceRule says which calls of a service of the swarm people are asked about. A service without rules asks for every
// call.
type ServiceRule struct {
	Service     string            `yaml:"service" doc:"Id or name of the service; \"*\" = all without their own; unique. Reserve it with swarm.names before you loosen anything."`
	Approval    string            `yaml:"approval,omitempty" doc:"Which calls need an approval: always, writes or never. Empty = writes."`
	Approvals   map[string]string `yaml:"approvals,omitempty" doc:"The same for single tools, by the service's ids."`
	ReadOnly    []string          `yaml:"read_only,omitempty" doc:"Tools that change nothing, by the service's own ids."`
	Untrusted   *bool             `yaml:"untrusted,omitempty" doc:"Whether its output may contain instructions of strangers; default: true."`
	TaintExempt []string          `yaml:"taint_exempt,omitempty" doc:"Tools for which approval never holds even after untrusted output."`
	Agents      *bool             `yaml:"agents,omitempty" doc:"Let agents of the swarm, which cannot ask people, call the tools that need an approval. Default: yes, unless approval is always."`
}

// ToolOAuth is a client of the authorization server of an HTTP server, for the grant client_credentials.
type ToolOAuth struct {
	ClientID         string   `yaml:"client_id,omitempty" doc:"Client registered at the server's authorization server. Setting it enables OAuth: tokens are fetched with the grant client_credentials, kept in memory only, and replaced before they expire and when the server refuses one."`
	ClientSecret     Secret   `yaml:"client_secret,omitempty" doc:"The client's secret."`
	ClientSecretFile string   `yaml:"client_secret_file,omitempty" doc:"File with the secret, read for each token; instead of client_secret."`
	Scopes           []string `yaml:"scopes,omitempty" doc:"Scopes of a token; empty = those that the server requests."`
	TokenURL         string   `yaml:"token_url,omitempty" doc:"Token endpoint. Empty = the one of the server's metadata: the server then chooses who gets the secret."`
}

// ToolPaths are files and folders of the machine that a program may use, besides its own folder and the system's programs and
// libraries.
type ToolPaths struct {
	Read  []string `yaml:"read,omitempty" doc:"Files and folders that the program may read and execute."`
	Write []string `yaml:"write,omitempty" doc:"Files and folders that the program may read, write and execute."`
}

// ToolLimits bound the resources of a program.
type ToolLimits struct {
	Processes int           `yaml:"processes,omitempty" doc:"Processes and threads of the program and its descendants; 0 = 256."`
	OpenFiles int           `yaml:"open_files,omitempty" doc:"Open files of each process; 0 = 4096."`
	Memory    int64         `yaml:"memory,omitempty" doc:"Bytes of private memory of each process; 0 = 4 GiB."`
	FileSize  int64         `yaml:"file_size,omitempty" doc:"Bytes of each file that the program writes; 0 = 1 GiB."`
	CPU       time.Duration `yaml:"cpu,omitempty" doc:"Processor time of each process, after which the kernel ends it; 0 = 4 h."`
}

// Settings that messages of other packages name.
const (
	DefaultAddr     = "127.0.0.1:9000" // the default port of ORBIT clients
	DefaultNATSAddr = "127.0.0.1:4222" // the default of the nats command

	DefaultTelemetryAddr = "127.0.0.1:9464" // the port that exporters for Prometheus use
)

// Values of gateway.asp_messages.
const (
	ASPMessagesText   = "text"
	ASPMessagesObject = "object"
)

// Partitions returns the number of partitions of the installation.
func (c Config) Partitions() subject.Partitions { return subject.Partitions(c.NATS.Partitions) } //nolint:gosec // validated

// Default returns the configuration of a first start: loopback addresses, the demo model, files under the current folder.
func Default() Config {
	return Config{
		Data:      "./data",
		Workspace: "./workspace",
		Model:     "demo",
		Profile:   "standard",
		// Below the 30 s that container runtimes commonly wait before SIGKILL.
		Shutdown: 25 * time.Second,
		Log:      Log{Level: "info", Format: "auto"},
		NATS:     NATS{URL: "nats://" + DefaultNATSAddr, Addr: DefaultNATSAddr, Bootstrap: BootstrapAuto, Partitions: int(subject.DefaultPartitions), Replicas: 1},
		Auth: Auth{
			JWT:  JWT{TenantClaim: "tenant", RolesClaim: "roles", Leeway: 30 * time.Second, MaxAge: 24 * time.Hour},
			OIDC: OIDC{Scopes: []string{"openid"}, Token: TokenAccess},
		},
		Access:  Access{See: access.Owner, Answer: access.Owner},
		Session: Session{TTL: 24 * time.Hour},
		Console: Console{Enabled: true},
		Gateway: Gateway{ASPStatuses: string(command.VocabularySDK), ASPMessages: ASPMessagesText, ForwardedHeader: "X-Forwarded-For"},
		// The MyAgent protocol sets these numbers.
		Pipeline: Pipeline{
			ConfirmTimeout: 300 * time.Second, MaxConcurrent: 10, TaskTimeout: 300 * time.Second,
			TaskAttempts: 3, RetryBackoff: 2 * time.Second, OnBusy: event.OnBusyReject,
		},
		// The Agent Swarm Protocol and the task service set these numbers.
		Task: Task{
			QueueTimeout: 30 * time.Second, Timeout: time.Hour, AskTimeout: 30 * time.Second, Lease: 45 * time.Second, Pause: 5 * time.Second,
			Tries: 3, MaxDepth: 16, Keep: 24 * time.Hour,
		},
		Assistant: Assistant{
			Enabled: true, Name: "assistant", Capabilities: []string{"general"}, Description: "Answers with the model of this installation and its tools.",
		},
		Tools: Tools{Builtin: true, Sandbox: string(sandbox.Prefer), Taint: true, BuiltinApproval: event.ApprovalNever},
		Quota: DefaultQuota(),
		Audit: Audit{Enabled: true, Remote: audit.RemoteHash},
	}
}
