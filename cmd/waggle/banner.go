package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
	"github.com/waggle-dev/waggle/cmd/waggle/process/own"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// banner prints the addresses and the commands to try next.
func banner(w io.Writer, l *config.Loaded, use config.For, r process.Running) {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "\nWaggle %s runs: %s\n\n", version, strings.Join(use.Roles, ", "))
	if r.Addr != nil {
		if use.Has(config.RoleGateway) {
			line("chat", "ws://%s/ws", r.Addr)
		}
		line("health", "http://%s/readyz", r.Addr)
	}
	if r.Telemetry != nil {
		line("metrics", "http://%s/metrics, profiles at /debug/pprof/", r.Telemetry)
	}
	if r.StartToken != "" {
		line("pages", "those of other addresses need the start token %s", r.StartToken)
	}
	if use.Has(config.RoleGateway) && l.Legacy {
		originals(line, l)
	}
	sources(line, l, r)
	if use.Has(config.RoleTools) && l.Tools.Builtin {
		line("workspace", "%s", l.Workspace)
	}
	if use.Has(config.RoleWorker) {
		line("model", "%s", describe(l, r.Model))
	}
	if use.Embedded {
		next(&b, l, r)
	}
	if r.Addr != nil && use.Has(config.RoleGateway) && l.Console.Enabled { // where the eye looks last
		fmt.Fprintf(&b, "\nOpen in a browser: http://%s/\n", r.Addr)
	}
	_, _ = fmt.Fprintln(w, b.String())
}

// sources says where the settings and the events are.
func sources(line func(name, format string, args ...any), l *config.Loaded, r process.Running) {
	if l.File != "" {
		line("settings", "%s", l.File)
	}
	if r.NATSURL != "" {
		line("NATS", "%s, files in %s", r.NATSURL, l.Data)
	} else {
		line("NATS", "%s", config.RedactURLs(l.NATS.URL))
	}
}

// originals says what pages and programs of the original protocols need.
func originals(line func(name, format string, args ...any), l *config.Loaded) {
	line("originals", "their pages need their origin in gateway.allowed_origins, for example WAGGLE_GATEWAY_ALLOWED_ORIGINS=http://localhost:3003")
	if !l.Auth.Empty() {
		line("", "their programs log in with ws://me:KEY@HOST, their pages with ?token=KEY")
	}
}

// describe names the model. If a configured key belongs to another one, it also shows how to
// choose that.
func describe(l *config.Loaded, name string) string {
	if l.Model != "demo" {
		return name
	}
	text := name + " (offline; no language model, but real tools)"
	if l.Source("model") != config.FromDefault {
		return text
	}
	if name := l.Providers.Keyed(); name != "" {
		text += "\n             the key of " + name + " is set: use it with --model " + name + ":NAME"
	}
	return text
}

// next shows the commands to try, with the flags that they need here.
func next(b *strings.Builder, l *config.Loaded, r process.Running) {
	self := os.Args[0] // the command line of this program
	chat, tail := self+" chat", self+" tail"
	sub := fmt.Sprintf("nats --server %s --nkey %s sub 'live.>'", r.NATSURL, keys.SeedFile(own.KeyFolder(l.Config), permission.Monitor))
	if l.Addr != config.DefaultAddr {
		chat += fmt.Sprintf(" --url ws://%s/ws", r.Addr)
	}
	if l.NATS.Addr != config.DefaultNATSAddr {
		tail += " --nats " + r.NATSURL
	}
	if l.Source("data") != config.FromDefault {
		tail += " --data " + l.Data
	}
	fmt.Fprintf(b, "\nIn another terminal:\n")
	fmt.Fprintf(b, "  %s \"which files are in the workspace, and what does notes.md say?\"\n", chat)
	fmt.Fprintf(b, "  %s        every event, as it happens; without Waggle:\n  %s\n", tail, sub)
}
