// Command nats-server is the NATS server of the version that Waggle is tested with, for
// places where its official image cannot be had. It takes the server's usual flags, and
// one more word:
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
	// healthURL is where deploy/nats/server.conf answers probes. The whole question is
	// asked: a server that has not caught up with its streams is not well yet, and as
	// long as it is not, no other one of the cluster should be stopped.
	healthURL = "http://127.0.0.1:8222/healthz"
	// probeTimeout is below the usual period of a container's health check.
	probeTimeout = 3 * time.Second
	// excerpt of an answer is enough to see what is wrong.
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

// serve runs the server until it is told to end: SIGTERM at once, SIGUSR2 after it has
// handed its streams and clients over.
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil) //nolint:gosec // whoever calls it says where its own server is
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req) //nolint:gosec // whoever calls it says where its own server is
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
