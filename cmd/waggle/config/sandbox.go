package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/internal/sandbox"
)

// SandboxOf returns the settings of a server's program.
func (t *Tools) SandboxOf(s *ToolServer) sandbox.Settings {
	return sandbox.Settings{
		Mode:    sandbox.Mode(cmp.Or(s.Sandbox, t.Sandbox)),
		Network: s.Network, Ports: s.NetworkPorts, Read: s.Paths.Read, Write: s.Paths.Write, Loose: t.written(s),
		Limits: sandbox.Limits{
			Processes: s.Limits.Processes, OpenFiles: s.Limits.OpenFiles,
			Memory: s.Limits.Memory, FileSize: s.Limits.FileSize, CPU: s.Limits.CPU,
		},
	}
}

// written returns the folders that programs of other servers may write.
func (t *Tools) written(s *ToolServer) (out []string) {
	for i := range t.Servers {
		if other := &t.Servers[i]; other.Name != s.Name && len(other.Command) > 0 {
			out = append(out, other.Paths.Write...)
			if other.Dir != "" {
				out = append(out, other.Dir)
			}
		}
	}
	return out
}

// sandboxes checks the sandboxes of all programs: their own settings, and that none opens what they are there to close.
func (p *problems) sandboxes(l *Loaded) {
	if !slices.Contains(sandbox.Modes, sandbox.Mode(l.Tools.Sandbox)) {
		p.add("tools.sandbox", "%q is not one of prefer, require, off", l.Tools.Sandbox)
		return
	}
	for i := range l.Tools.Servers {
		s := &l.Tools.Servers[i]
		if len(s.Command) == 0 {
			continue
		}
		at := fmt.Sprintf("tools.servers[%d]", i)
		box := l.Tools.SandboxOf(s)
		if err := box.Complete(); err != nil {
			p.add(at, "%s", err)
		}
		if box.Mode == sandbox.Off {
			continue
		}
		p.closed(at, l, s)
		p.apart(at, l, i)
		p.unreached(at, l, box)
	}
}

// unreached refuses ports of this installation that a program could connect to.
func (p *problems) unreached(at string, l *Loaded, box sandbox.Settings) {
	own := l.ownPorts()
	for _, port := range box.Reaches() {
		switch owner := own[port]; {
		case owner == "":
		case slices.Contains(box.Ports, port):
			p.add(at+".network_ports", "%d is the port of %s, which no tool may reach", port, owner)
		default:
			p.add(at+".network", "opens port %d of %s, which no tool may reach; serve %s on another port, or omit network", port, owner, owner)
		}
	}
}

// closed refuses folders of a program that hold secrets, or lie within a folder of them.
func (p *problems) closed(at string, l *Loaded, s *ToolServer) {
	for setting, paths := range s.paths() {
		for _, path := range paths {
			for _, secret := range l.SecretPaths(l.File) {
				if path != "" && (holds(path, secret) || holds(secret, path)) {
					p.add(at+"."+setting, "%s would expose %s to the program; choose folders without files of Waggle", path, secret)
				}
			}
		}
	}
}

// paths returns the files and folders of a server, by their settings.
func (s *ToolServer) paths() map[string][]string {
	return map[string][]string{"dir": {s.Dir}, "paths.read": s.Paths.Read, "paths.write": s.Paths.Write}
}

// apart refuses a path of a server that another server could replace by a link, and thereby open anything to the first one.
func (p *problems) apart(at string, l *Loaded, i int) {
	for j := range l.Tools.Servers {
		other := &l.Tools.Servers[j]
		if j == i || len(other.Command) == 0 {
			continue
		}
		for _, folder := range append([]string{other.Dir}, other.Paths.Write...) {
			for setting, paths := range l.Tools.Servers[i].paths() {
				for _, path := range paths {
					if folder != "" && path != "" && holds(folder, path) && !holds(path, folder) {
						p.add(at+"."+setting, "%s is inside %s, where %s could replace it", path, folder, other.Name)
					}
				}
			}
		}
	}
}

// SecretPaths returns the files and folders that no program may see, that of the configuration among them.
func (c *Config) SecretPaths(file string) []string {
	all := []string{
		file, c.Data, c.NATS.Creds, c.NATS.NKey, c.NATS.TLSKey, c.Cells.Creds, c.Cells.NKey, c.Cells.TLSKey, c.Session.StateKeyFile, c.Signing.KeyFile,
	}
	for i := range c.Tools.Servers {
		all = append(all, c.Tools.Servers[i].OAuth.ClientSecretFile)
	}
	return slices.DeleteFunc(all, func(path string) bool { return path == "" })
}

// holds reports whether a path is a folder or at a folder that holds the other.
func holds(folder, path string) bool {
	rel, err := filepath.Rel(resolved(folder), resolved(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolved returns the path without symbolic links, as far as it exists.
func resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	if parent := filepath.Dir(abs); parent != abs {
		return filepath.Join(resolved(parent), filepath.Base(abs))
	}
	return abs
}

// natsPorts are the ports of addresses of NATS that name none, by scheme.
var natsPorts = map[string]string{"": "4222", "nats": "4222", "tls": "4222", "ws": "80", "wss": "443"}

// ownPorts returns the ports of this installation, with the setting of each.
func (l *Loaded) ownPorts() map[int]string {
	out := map[int]string{}
	add := func(text, setting string) {
		if n, err := strconv.Atoi(text); err == nil {
			out[n] = setting
		}
	}
	for _, part := range splitList(l.NATS.URL) {
		if u, err := url.Parse(part); err == nil {
			add(cmp.Or(u.Port(), natsPorts[u.Scheme]), "nats.url")
		}
	}
	for setting, addr := range map[string]string{
		"nats.addr": l.NATS.Addr, "addr": l.Addr, "telemetry.addr": cmp.Or(l.Telemetry.Addr, DefaultTelemetryAddr),
	} {
		if _, port, err := net.SplitHostPort(addr); err == nil {
			add(port, setting)
		}
	}
	return out
}
