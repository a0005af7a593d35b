package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"reflect"
	"time"

	"github.com/cli/browser"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/plug"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

type demoCmd struct {
	upCmd
	Browser bool          `negatable:"" default:"true" help:"Open the console in a browser."`
	Down    time.Duration `help:"How long the server stays down after it was killed." default:"2s" placeholder:"TIME"`
}

// readyWithin bounds the start of the child before the browser opens; a log of many sessions takes longest.
const readyWithin = 5 * time.Minute

// Run implements the command. It runs "waggle up" as a child process, which the console may kill.
func (c *demoCmd) Run(std streams) error {
	l, err := load(c.Config, c.upCmd)
	if err != nil {
		return err
	}
	if err := check(l, config.For{Roles: config.Roles, Embedded: true}); err != nil {
		return err
	}
	if c.PrintConfig {
		return l.Print(std.out)
	}
	if err := auth.RequireLoopback(l.Addr); err != nil || !l.Auth.Empty() {
		return usageError{errors.Join(errors.New("the demo runs without authentication on a loopback address only: everybody who opens its page may kill it"), err)}
	}
	ctx, stop := endable()
	defer stop()
	addr, err := fixed(ctx, l.Addr)
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(addr)
	p, err := plug.Open(ctx, "http://"+addr, "http://localhost:"+port)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	go c.show(ctx, std, addr)
	return c.keep(ctx, std, p, c.environment(l, addr, p.URL()))
}

// fixed returns the address, with a free port in place of 0: the page finds the server again under the same one.
func fixed(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" {
		return addr, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return "", err
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String(), nil
}

// environment returns the settings of the child: those of this command, and that tools which write ask first.
func (c *demoCmd) environment(l *config.Loaded, addr, plug string) []string {
	given := map[string]string{}
	collect(reflect.ValueOf(c.upCmd), given)
	given["addr"], given["console.plug"] = addr, plug
	if l.Source("tools.builtin_approval") == config.FromDefault {
		given["tools.builtin_approval"] = event.ApprovalWrites
	}
	env := os.Environ()
	for _, f := range config.Fields(&config.Config{}) {
		if v, ok := given[f.Path]; ok {
			env = append(env, f.Env+"="+v)
		}
	}
	if c.Config != "" {
		env = append(env, "WAGGLE_CONFIG="+c.Config)
	}
	return env
}

// keep runs the child until the context ends, or until it ends by itself.
func (c *demoCmd) keep(ctx context.Context, std streams, p *plug.Plug, env []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	out := std.out
	err = p.Run(ctx, func(ctx context.Context) *exec.Cmd {
		child := exec.CommandContext(ctx, self, "up")
		child.Env, child.Stdout, child.Stderr = env, out, std.err
		return child
	}, c.Down, func(pid int) {
		out = nil // the banner has been seen
		_, _ = fmt.Fprintf(std.out, "\nThe server (process %d) was killed with SIGKILL. It starts again in %s.\n\n", pid, c.Down)
	})
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return errSilent // the child has said why
	}
	return err
}

// show opens the console once it is there.
func (c *demoCmd) show(ctx context.Context, std streams, addr string) {
	if err := probeUntil(ctx, time.Now().Add(readyWithin), addr); err != nil || !c.Browser {
		return
	}
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	_ = browser.OpenURL("http://" + addr + "/") // the banner names the address
	_, _ = fmt.Fprintln(std.out, `Send a message, and press "Pull the plug" while the answer comes.`)
}
