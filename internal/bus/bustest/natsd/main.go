// Command natsd is the NATS server of the tests. It is a separate process, so that test binaries do not link a server, a test may
// kill one with SIGKILL, and the race detector of a test does not slow it down. It prints "ready URL" and ends with its
// standard input.
//
// With -shared it serves many tests at once and outlives the process that started it: see serveShared.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("natsd", flag.ContinueOnError)
	name := flags.String("name", "test", "name of the server")
	port := flags.Int("port", server.RANDOM_PORT, "port of clients; -1: any")
	store := flags.String("dir", "", "folder for JetStream's files")
	cluster := flags.Int("cluster-port", 0, "port of routes; 0: no cluster")
	routes := flags.String("routes", "", "URLs of the other members, separated by commas")
	shared := flags.String("shared", "", "folder with the locks of a server for many tests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *shared != "" {
		return serveShared(*shared, *store)
	}
	o := options(*name, *port, *store)
	if *cluster != 0 {
		// Clients know the addresses that their test gives them, so that they stay behind its proxies.
		o.Cluster = server.ClusterOpts{Name: "test", Host: host, Port: *cluster, NoAdvertise: true}
		o.RoutesStr = *routes
		o.Routes = server.RoutesFromStr(strings.TrimSpace(*routes))
	}
	s, err := start(o)
	if err != nil {
		return err
	}
	if err := announce(s); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	end(s)
	return err
}
