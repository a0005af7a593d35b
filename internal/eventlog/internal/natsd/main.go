// Command natsd is a NATS server that tests of the event log kill with SIGKILL. It reads its options as JSON, prints
// "ready" and ends with its standard input.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// patience bounds the start, which recovers the files after a kill.
const patience = 30 * time.Second

// config holds a test's settings of a server.
type config struct {
	Name    string
	Port    int
	Cluster int // port, 0 = alone
	Routes  []string
	Dir     string
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
}

func run(text string) error {
	var c config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("read the options: %w", err)
	}
	o, err := options(c)
	if err != nil {
		return err
	}
	s, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("make the server: %w", err)
	}
	if !o.NoLog {
		s.ConfigureLogger()
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		return fmt.Errorf("it is not ready after %v", patience)
	}
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		return fmt.Errorf("say that it is ready: %w", err)
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func options(c config) (*server.Options, error) {
	o := &server.Options{
		ServerName: c.Name, Host: "127.0.0.1", Port: c.Port, JetStream: true, StoreDir: c.Dir,
		SyncInterval: 100 * time.Millisecond, NoSigs: true, NoLog: os.Getenv("WAGGLE_LOG_VERBOSE") == "",
		DisableJetStreamBanner: true,
	}
	if c.Cluster == 0 {
		return o, nil
	}
	o.Cluster = server.ClusterOpts{Name: "waggle", Host: "127.0.0.1", Port: c.Cluster, NoAdvertise: true}
	for _, r := range c.Routes {
		u, err := url.Parse(r)
		if err != nil {
			return nil, fmt.Errorf("route %s: %w", r, err)
		}
		o.Routes = append(o.Routes, u)
	}
	return o, nil
}
