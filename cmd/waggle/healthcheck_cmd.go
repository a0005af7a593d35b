package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

// probeTimeout is below the usual period of a container's health check.
const probeTimeout = 3 * time.Second

type healthcheckCmd struct {
	fileFlag
	Addr *string `opt:"addr" help:"Address of the process (WAGGLE_ADDR; 127.0.0.1:9000)." placeholder:"HOST:PORT"`
}

// Run implements the command.
func (c *healthcheckCmd) Run(std streams) error {
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	if err := probe(context.Background(), l.Addr, "/readyz"); err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, "ready")
	return err
}

// probe asks the process at addr and returns an error unless it answers with 200.
// Empty means the default address.
func probe(ctx context.Context, addr, path string) error {
	host, port, err := net.SplitHostPort(addr)
	if addr == "" {
		host, port, err = net.SplitHostPort(config.DefaultAddr)
	}
	if err != nil {
		return usageError{fmt.Errorf("addr: %w", err)}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens everywhere, here too
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+path, nil)
	if err != nil {
		return usageError{fmt.Errorf("addr: %w", err)}
	}
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
