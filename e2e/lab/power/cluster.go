package power

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
)

// configVar holds the configuration of a process of this program that is a NATS server.
const configVar = "WAGGLE_POWER_SERVER"

// Always is the time after which servers write through if they do before they acknowledge.
const Always = -time.Second

// servers is how many a cluster has.
const servers = 3

type config struct {
	Name   string
	Client string
	Route  string
	Routes []string
	Dir    string
	Sync   time.Duration
}

// Serve runs the NATS server that this process is to be, until it is killed. It reports false
// in other processes.
func Serve() bool {
	text := os.Getenv(configVar)
	if text == "" {
		return false
	}
	var c config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err) // ours
	}
	s, err := server.NewServer(c.options())
	if err != nil {
		fmt.Fprintln(os.Stderr, "power:", err)
		os.Exit(1)
	}
	s.ConfigureLogger()
	s.Start()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
	s.Shutdown()
	return true
}

func (c config) options() *server.Options {
	client, route := netip.MustParseAddrPort(c.Client), netip.MustParseAddrPort(c.Route)
	o := &server.Options{
		ServerName: c.Name, Host: client.Addr().String(), Port: int(client.Port()), JetStream: true, StoreDir: c.Dir, SyncInterval: c.Sync,
		JetStreamMaxStore: 1 << 40, // streams reserve more than they use
		NoSigs:            true, DisableJetStreamBanner: true,
		Cluster: server.ClusterOpts{Name: "power", Host: route.Addr().String(), Port: int(route.Port()), NoAdvertise: true},
	}
	if c.Sync == Always {
		o.SyncAlways, o.SyncInterval = true, 0
	}
	for _, r := range c.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: r})
	}
	return o
}

// Cluster is three NATS servers, each a process, that all write through after the same time.
type Cluster struct {
	t       testing.TB
	configs [servers]config
	process [servers]*process.Process
}

// Start starts the servers with their data in the folders. They end with the test.
func Start(t testing.TB, sync time.Duration, folders [servers]string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	var routes []string
	for range servers {
		routes = append(routes, freeport.Addr(t))
	}
	for i, dir := range folders {
		c.configs[i] = config{fmt.Sprint("nats-", i), freeport.Addr(t), routes[i], routes, filepath.Join(dir, fmt.Sprint("nats-", i)), sync}
	}
	for i := range servers {
		c.Restart(i)
	}
	return c
}

// URL names all servers.
func (c *Cluster) URL() string {
	var out []string
	for _, s := range c.configs {
		out = append(out, "nats://"+s.Client)
	}
	return strings.Join(out, ",")
}

// Kill ends server i with SIGKILL.
func (c *Cluster) Kill(i int) { c.process[i].Kill() }

// Restart starts server i on what its disk holds.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	text, err := json.Marshal(c.configs[i])
	require.NoError(c.t, err)
	self, err := os.Executable()
	require.NoError(c.t, err)
	c.process[i] = process.Start(c.t, process.Options{Name: c.configs[i].Name, Program: self, Env: []string{configVar + "=" + string(text)}})
}
