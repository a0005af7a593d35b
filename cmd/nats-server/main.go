// Command nats-server is the NATS server of the version that Waggle is tested with, for places without access to the
// official image. It accepts the server's usual flags, and one more command:
//
//	nats-server healthcheck [URL]   exit with 0 if the server at the URL is well
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// healthURL is the address at which deploy/nats/server.conf answers probes. The probe makes the full check: a server
	// that has not caught up with its streams is not well yet, and until then no other server of the cluster should be
	// stopped.
	healthURL = "http://127.0.0.1:8222/healthz"
	// probeTimeout is below the usual period of a container's health check.
	probeTimeout = 3 * time.Second
	// excerpt bounds the printed part of an answer, enough to see the fault.
	excerpt = 1024
)

func main() {
	err := run(os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "nats-server:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "healthcheck" {
		url := healthURL
		if len(args) > 1 {
			url = args[1]
		}
		return probe(context.Background(), url)
	}
	return serve(args)
}

// serve runs the server until a signal: SIGTERM ends it at once, SIGUSR2 after it has handed over its streams and clients.
func serve(args []string) error {
	help := func() { fmt.Fprintln(os.Stderr, "the flags are those of nats-server") }
	flags := flag.NewFlagSet("nats-server", flag.ContinueOnError)
	opts, err := server.ConfigureOptions(flags, args, server.PrintServerAndExit, help, server.PrintTLSHelpAndDie)
	if err != nil || opts.CheckConfig {
		return err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		return err
	}
	s.WaitForShutdown()
	return nil
}

// probe returns an error unless the server answers with 200.
func probe(ctx context.Context, url string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil) //nolint:gosec // the caller names its own server
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req) //nolint:gosec // the caller names its own server
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, excerpt))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}
