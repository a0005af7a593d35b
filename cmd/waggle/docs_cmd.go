package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cli/browser"

	"github.com/waggle-dev/waggle/docs/site/offline"
	"github.com/waggle-dev/waggle/internal/auth"
)

type docsCmd struct {
	Page    []string `arg:"" optional:"" help:"A page, such as \"start/run-it\", or words to search for. Without it, the first page."`
	Addr    string   `help:"Where to serve the pages: a loopback address." default:"127.0.0.1:0" placeholder:"HOST:PORT"`
	Browser bool     `negatable:"" default:"true" help:"Open the page in a browser."`
}

// docsHeaders bounds how long a browser may take for the head of a request.
const docsHeaders = 10 * time.Second

// Run implements the command. It serves the pages until it is interrupted.
func (c *docsCmd) Run(std streams) error {
	if err := auth.RequireLoopback(c.Addr); err != nil {
		return usageError{fmt.Errorf("--addr %s: other machines could reach it; name a port of 127.0.0.1", c.Addr)}
	}
	ctx, stop := endable()
	defer stop()
	docs, err := offline.New(version)
	if err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("serve the documentation: %w", err)
	}
	server := &http.Server{Handler: docs, ReadHeaderTimeout: docsHeaders}
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.WithoutCancel(ctx)) // Serve returns then
	}()
	address := "http://" + ln.Addr().String() + docs.Find(strings.Join(c.Page, " "))
	_, _ = fmt.Fprintf(std.out, "%s\nCtrl-C ends it.\n", address)
	if c.Browser {
		browser.Stdout, browser.Stderr = io.Discard, io.Discard
		_ = browser.OpenURL(address) // it is printed, too
	}
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the documentation: %w", err)
	}
	return nil
}
