// Package embedded runs a NATS server inside the process, for installations without a separate one.
package embedded

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// startMaxWait bounds the start of the embedded server, which includes the recovery of files after an unclean end.
const startMaxWait = 60 * time.Second

// startLook is the interval at which the start checks for a failure of the server. A server that becomes ready is
// noticed at once.
const startLook = 250 * time.Millisecond

// maxPayload is NATS' default, stated because the sizes of frames depend on it.
const maxPayload = 1 << 20

// Config configures the server inside this process.
type Config struct {
	Name     string
	Host     string // default 127.0.0.1
	Port     int    // -1 = any free port, 0 = in-process connections only
	StoreDir string // folder for JetStream's files
	// Sync bounds the delay until a write reaches the disk: "1s" (default), any duration, or "always" before the
	// acknowledgement.
	Sync        string
	Logger      zerolog.Logger // messages of the server; its notices at level debug
	ClusterName string         // with ClusterPort and Routes: a member of a cluster
	ClusterPort int            // 0 = no cluster
	Routes      []string       // nats-route URLs of the other members
	Users       []User         // without users every program that reaches the port may do everything
}

// User may connect to the embedded server with the seed of its nkey. It may do everything, or with a list what the list names.
type User struct {
	Key  string // public nkey
	List *permission.List
}

// serverUsers returns the users in the server's form.
func serverUsers(users []User) []*server.NkeyUser {
	var out []*server.NkeyUser
	for _, u := range users {
		n := &server.NkeyUser{Nkey: u.Key}
		if u.List != nil {
			n.Permissions = &server.Permissions{Publish: only(u.List.Publish), Subscribe: only(u.List.Subscribe)}
		}
		out = append(out, n)
	}
	return out
}

// only allows the subjects. The server takes an empty list for everything.
func only(subjects []string) *server.SubjectPermission {
	if len(subjects) == 0 {
		return &server.SubjectPermission{Deny: []string{">"}}
	}
	return &server.SubjectPermission{Allow: subjects}
}

// Start starts a server with JetStream and returns when it accepts connections. The caller ends it with
// Shutdown and WaitForShutdown.
func Start(cfg Config) (*server.Server, error) { return start(cfg, func(string) {}) }

// start is Start, and calls failed with the name of each stream that takes no more messages after a failed write, and without
// a name when none does.
func start(cfg Config, failed func(stream string)) (*server.Server, error) {
	opts, err := serverOptions(cfg)
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("make the embedded NATS server: %w", err)
	}
	log := &serverLog{to: cfg.Logger, fatal: make(chan string, 1), failed: failed}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	err = awaitReady(s, log.fatal)
	if err == nil {
		return s, nil
	}
	s.Shutdown()
	s.WaitForShutdown()
	return nil, fmt.Errorf("start the embedded NATS server on %s:%d with its files in %s: %w", opts.Host, opts.Port, cfg.StoreDir, err)
}

// awaitReady returns when the server accepts connections, or the reason why it never will.
func awaitReady(s *server.Server, fatal <-chan string) error {
	for began := time.Now(); time.Since(began) < startMaxWait; {
		if s.ReadyForConnections(startLook) {
			return nil
		}
		select {
		case why := <-fatal:
			return errors.New(why)
		default:
		}
	}
	return fmt.Errorf("it is not ready after %v", startMaxWait)
}

func serverOptions(cfg Config) (*server.Options, error) {
	opts := &server.Options{
		ServerName: cfg.Name, Host: cfg.Host, Port: cfg.Port, DontListen: cfg.Port == 0,
		JetStream: true, StoreDir: cfg.StoreDir, MaxPayload: maxPayload,
		NoLog: true, NoSigs: true, DisableShortFirstPing: true, Nkeys: serverUsers(cfg.Users),
	}
	if opts.Host == "" {
		opts.Host = "127.0.0.1"
	}
	if cfg.StoreDir == "" {
		return nil, errors.New("the embedded NATS server needs a folder for its files")
	}
	switch cfg.Sync {
	case "always":
		opts.SyncAlways = true
	case "":
		opts.SyncInterval = time.Second // NATS' default is two minutes
	default:
		d, err := time.ParseDuration(cfg.Sync)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("sync must be a duration or \"always\", not %q", cfg.Sync)
		}
		opts.SyncInterval = d
	}
	if cfg.ClusterPort != 0 {
		opts.Cluster = server.ClusterOpts{Name: cfg.ClusterName, Host: opts.Host, Port: cfg.ClusterPort}
		opts.RoutesStr = strings.Join(cfg.Routes, ",")
		opts.Routes = server.RoutesFromStr(opts.RoutesStr)
	}
	return opts, nil
}
