package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

const (
	// probeTimeout is below the usual period of a container's health check.
	probeTimeout = 3 * time.Second
	// probeEvery is the pause between two probes of --wait.
	probeEvery = time.Second
)

type healthcheckCmd struct {
	fileFlag
	Addr *string       `opt:"addr" help:"Address of the process (WAGGLE_ADDR; 127.0.0.1:9000)." placeholder:"HOST:PORT"`
	Wait time.Duration `help:"How long to wait for the process to become ready." default:"0s"`
}

// Run implements the command.
func (c *healthcheckCmd) Run(std streams) error {
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	ctx, stop := endable()
	defer stop()
	if err := probeUntil(ctx, time.Now().Add(c.Wait), l.Addr); err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, "ready")
	return err
}

// probeUntil repeats probe until the process is ready or the deadline has passed,
// and returns the error of the last try. An address that cannot be one is not tried again.
func probeUntil(ctx context.Context, deadline time.Time, addr string) error {
	for {
		err := probe(ctx, addr, "/readyz")
		if _, wrong := errors.AsType[usageError](err); err == nil || wrong || time.Until(deadline) <= 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(probeEvery):
		}
	}
}

// probe asks the process at addr and returns an error unless it answers with 200.
// Empty means the default address.
func probe(ctx context.Context, addr, path string) error {
	at, err := reachable(addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+path, nil)
	if err != nil {
		return usageError{fmt.Errorf("addr: %w", err)}
	}
	req.Header.Set("Accept", "text/html, */*;q=0.8") // as a browser, for the page
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1024))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", path, resp.Status, terminal.Line(string(body), 500))
	}
	return nil
}

// reachable returns where this machine reaches a process that listens at an address. Empty means the default address.
func reachable(addr string) (string, error) {
	if addr == "" {
		addr = config.DefaultAddr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", usageError{fmt.Errorf("addr: %w", err)}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens everywhere, here too
	}
	return net.JoinHostPort(host, port), nil
}
