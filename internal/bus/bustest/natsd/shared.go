package main

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// control is the account, and the user, of requests to this program.
	control = "natsd"
	// drop is the subject of requests that delete the account which the message names, with all of its streams.
	drop = "natsd.drop"
	// idle is the time without a test process after which the server ends: longer than the go command takes from the
	// end of one package to the start of the next.
	idle = 20 * time.Second
	// accountStore is the space that an account may reserve: several times that of the default topology.
	accountStore = 16 << 30
	// accountStreams is more than the number of streams of an installation with the most partitions.
	accountStreams = 500
	// serverStore is out of reach: NATS reserves the limits of all streams, which tests do not fill.
	serverStore = 1 << 50
)

// serveShared serves tests of many processes. Each client has the account of its user name, with its own JetStream;
// the first client of an account creates it. The server ends when no process has held the lock "users" of the folder for a
// while.
func serveShared(dir, store string) error {
	users, err := os.OpenFile(filepath.Join(filepath.Clean(dir), "users"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	a := &accounts{}
	o := options("shared", server.RANDOM_PORT, store)
	o.JetStreamMaxStore, o.CustomClientAuthentication = serverStore, a
	if a.srv, err = start(o); err != nil {
		return err
	}
	nc, err := nats.Connect("", nats.InProcessServer(a.srv), nats.Timeout(startMaxWait), nats.UserInfo(control, control))
	if err != nil {
		return err
	}
	if _, err := nc.Subscribe(drop, a.drop); err != nil {
		return err
	}
	if err := nc.Flush(); err != nil {
		return err
	}
	if err := announce(a.srv); err != nil {
		return err
	}
	awaitIdle(users)
	nc.Close()
	end(a.srv)
	return os.RemoveAll(store)
}

// awaitIdle returns, with the lock, when no other process has held it for a while.
func awaitIdle(users *os.File) {
	const look = time.Second
	every := time.NewTicker(look)
	defer every.Stop()
	for quiet := time.Duration(0); quiet < idle; quiet += look {
		<-every.C
		if syscall.Flock(int(users.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			quiet = 0
			continue
		}
		if quiet+look < idle {
			_ = syscall.Flock(int(users.Fd()), syscall.LOCK_UN)
		}
	}
}

// accounts gives each client the account of its user. It is safe for concurrent use.
type accounts struct {
	srv *server.Server
	mu  sync.Mutex
}

// Check implements server.Authentication.
func (a *accounts) Check(c server.ClientAuthentication) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := c.GetOpts().Username
	if name == "" {
		return false
	}
	acc, fresh := a.srv.LookupOrRegisterAccount(name)
	if fresh && name != control {
		limits := server.JetStreamAccountLimits{
			MaxMemory: -1, MaxStore: accountStore, MaxStreams: accountStreams, MaxConsumers: -1, MaxAckPending: -1,
			MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1,
		}
		if err := acc.EnableJetStream(map[string]server.JetStreamAccountLimits{"": limits}, nil); err != nil {
			return false
		}
	}
	c.RegisterUser(&server.User{Username: name, Account: acc})
	return true
}

// drop deletes an account's streams and files. Its answer is empty, or the reason of a failure.
func (a *accounts) drop(m *nats.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name, said := string(m.Data), ""
	if acc, err := a.srv.LookupAccount(name); err == nil {
		if err := acc.DisableJetStream(); err != nil {
			said = err.Error()
		}
		if err := os.RemoveAll(filepath.Join(a.srv.StoreDir(), name)); err != nil {
			said = err.Error()
		}
	}
	_ = m.Respond([]byte(said)) // the test waits no longer than maxWait
}
