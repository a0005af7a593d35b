package sandbox

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A command names files that its program needs: [python3, /srv/tools/server.py]. They are readable in the sandbox without a
// setting. The rules:
//
//   - A file or folder that a word names is readable, and so is a path after the "=" of an option.
//   - A script imports its neighbours: its folder is readable, unless that is a folder of many (a home, a hidden folder of a
//     home, /etc, /srv, ...) or holds secrets of waggle. Of JavaScript the node_modules and package.json of the folders
//     above are readable, too.
//   - A program in a bin folder of Python or Node needs its installation: bin, lib and the like of it, and not what else
//     stands beside them. The same holds for what its links lead to, and for the base of a virtual environment.
//   - Nothing is opened by a link that a program of a tool server may have made: it could lead anywhere. Only an
//     installation may be found through a link in the program's own folder, because only programs and libraries are opened.

// linksMost bounds the links of one path, as the kernel does.
const linksMost = 40

// naming finds what a command names.
type naming struct {
	homes  []string
	secret []string // files and folders that stay closed
	own    []string // folders that the program itself may write
	loose  []string // folders in which other programs may replace files
	path   string   // where programs are looked up
	out    []string
}

// named returns the files and folders that the command names, without links, and what they need to be used.
func named(c Command, program string) []string { return newNaming(c).all(c, program) }

func newNaming(c Command) *naming {
	n := &naming{homes: homes(), secret: real(c.Settings.Secret), loose: real(c.Settings.Loose), own: real(c.Settings.Write)}
	if c.Dir != "" {
		n.own = append(n.own, real([]string{c.Dir})...)
	}
	for _, v := range c.Env {
		if name, value, _ := strings.Cut(v, "="); name == "PATH" {
			n.path = value
		}
	}
	return n
}

// all opens what the command and its program name.
func (n *naming) all(c Command, program string) []string {
	n.program(program)
	for _, w := range c.Args[1:] {
		if strings.HasPrefix(w, "-") {
			_, w, _ = strings.Cut(w, "=")
		}
		switch {
		case w == "" || strings.ContainsRune(w, 0):
			continue
		case !filepath.IsAbs(w) && c.Dir == "":
			continue // it lies in the private folder, which is empty
		case !filepath.IsAbs(w):
			w = c.Dir + "/" + w
		}
		n.open(w)
	}
	slices.Sort(n.out)
	return slices.Compact(n.out)
}

// open opens what a word of the command names.
func (n *naming) open(path string) {
	file, hops, ok := n.follow(path, slices.Concat(n.own, n.loose))
	if !ok {
		if file, _, ok := n.follow(path, n.loose); ok && within(n.own, file) {
			n.modules(file) // those of the folders above its own
		}
		return
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
	case info.IsDir():
		n.folder(file)
	case info.Mode().IsRegular():
		n.file(file)
		n.script(file)
		n.installations(hops)
	}
}

// program opens what the program needs besides itself.
func (n *naming) program(path string) {
	file, hops, ok := n.follow(path, n.loose)
	if !ok {
		return
	}
	n.script(file)
	n.installations(hops)
}

// follow returns the path without links, and where its last part was on the way. It is not ok if something is missing, or if
// a link or the end lies in one of the folders.
func (n *naming) follow(path string, closed []string) (end string, hops []string, ok bool) {
	end, rest, links := "/", strings.Split(path, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			end = filepath.Dir(end)
			continue
		}
		at := filepath.Join(end, part)
		to, err := os.Readlink(at)
		if len(rest) == 0 {
			hops = append(hops, at)
		}
		if err != nil { // not a link, or missing
			end = at
			continue
		}
		if links++; links > linksMost || within(closed, at) {
			return "", nil, false
		}
		if filepath.IsAbs(to) {
			end = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	if _, err := os.Lstat(end); err != nil || within(closed, end) {
		return "", nil, false
	}
	return end, hops, true
}

// file opens a file.
func (n *naming) file(path string) {
	if !within(n.secret, path) && !within(readable, path) {
		n.out = append(n.out, path)
	}
}

// folder opens a folder, unless it is one of many or holds secrets.
func (n *naming) folder(path string) {
	if !n.many(path) && !within(n.own, path) {
		n.file(path)
	}
}

var (
	// scripts are the ends of the names of programs that import their neighbours.
	scripts = append([]string{".py", ".pyz", ".rb", ".pl", ".php", ".lua", ".sh", ".bash", ".jar", ".exs"}, javascript...)
	// javascript are those that import packages of the folders above.
	javascript = []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"}
)

// script opens what a script imports, and the installation of its interpreter.
func (n *naming) script(file string) {
	interpreter := n.interpreter(file)
	if !slices.Contains(scripts, filepath.Ext(file)) && interpreter == "" {
		return
	}
	n.folder(filepath.Dir(file))
	n.modules(file)
	if _, hops, ok := n.follow(interpreter, n.loose); interpreter != "" && ok {
		n.installations(hops)
	}
}

// modules opens the packages of a script of JavaScript.
func (n *naming) modules(file string) {
	if !slices.Contains(javascript, filepath.Ext(file)) && filepath.Base(n.interpreter(file)) != "node" {
		return
	}
	for dir := filepath.Dir(file); !n.many(dir); dir = filepath.Dir(dir) {
		n.parts(dir, "node_modules", "package.json", "tsconfig.json")
	}
}

// parts opens those of the files and folders in a folder that are there and no links.
func (n *naming) parts(dir string, names ...string) {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err != nil || !info.IsDir() && !info.Mode().IsRegular() || within(n.own, path) || within(n.loose, path) {
			continue
		}
		if !n.holdsSecret(path) {
			n.file(path)
		}
	}
}

// installations opens the installations to which programs belong.
func (n *naming) installations(programs []string) {
	for _, p := range programs {
		bin := filepath.Dir(p)
		prefix := filepath.Dir(bin)
		switch filepath.Base(bin) {
		case "bin":
			n.installation(prefix)
		case "shims": // of pyenv and its like, which start the program of a version
			if exists(prefix, "versions") && exists(prefix, "libexec") {
				n.parts(prefix, "bin", "libexec", "shims", "versions", "version", "plugins")
			}
		}
	}
}

// installation opens the installation of Python or Node at the prefix, if the prefix has one.
func (n *naming) installation(prefix string) {
	python, _ := filepath.Glob(filepath.Join(escaped(prefix), "lib", "python[0-9]*"))
	environment := filepath.Join(prefix, "pyvenv.cfg")
	if len(python) == 0 && !exists(prefix, "pyvenv.cfg") && !exists(prefix, "lib/node_modules") && !exists(prefix, "include/node") {
		return
	}
	n.parts(prefix, installed...)
	if exists(prefix, "conda-meta") {
		n.parts(prefix, "ssl") // its certificates
	}
	// A program could write another base into an environment of its own.
	if base := baseOf(environment); base != "" && !within(n.own, environment) && !within(n.loose, environment) {
		if _, hops, ok := n.follow(filepath.Join(base, "python3"), n.loose); ok {
			n.installations(hops)
		}
		n.parts(filepath.Dir(base), installed...)
	}
}

// installed are the parts of an installation that hold programs and libraries.
var installed = []string{"bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg"}

// escaped returns a path for a pattern.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// headMost bounds what is read of a file to see what it is.
const headMost = 8 << 10

// baseOf returns the folder of the Python of a virtual environment; empty without one.
func baseOf(environment string) string {
	for line := range strings.Lines(head(environment)) {
		name, value, _ := strings.Cut(line, "=")
		value = strings.TrimSpace(value)
		if strings.TrimSpace(name) == "home" && filepath.Base(value) == "bin" && filepath.IsAbs(value) {
			return value
		}
	}
	return ""
}

// interpreter returns the program that a script names in its first line; empty for other files.
func (n *naming) interpreter(file string) string {
	line, _, _ := strings.Cut(head(file), "\n")
	line, ok := strings.CutPrefix(line, "#!")
	words := strings.Fields(line)
	if !ok || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) != "env" {
		return words[0]
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "-") || strings.Contains(w, "=") {
			continue
		}
		for _, dir := range filepath.SplitList(n.path) {
			if path, err := exec.LookPath(filepath.Join(dir, w)); err == nil && filepath.IsAbs(path) {
				return path
			}
		}
		return w
	}
	return words[0]
}

// head returns the beginning of a file.
func head(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(path) //nolint:gosec // A path of the operator's command.
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	b, _ := io.ReadAll(io.LimitReader(f, headMost))
	return string(b)
}

// roots are folders of many programs: their own files may be opened, and they may not.
var roots = []string{
	"/", "/boot", "/home", "/Users", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/usr", "/usr/local",
	"/var", "/var/cache", "/var/lib", "/var/log", "/var/opt", "/var/spool", "/var/tmp", "/var/www",
}

// never are folders of the system below which no folder is opened.
var never = []string{"/dev", "/etc", "/proc", "/run", "/sys", "/var/run"}

// guarded are folders of a home below which no folder is opened: they hold keys and passwords.
var guarded = []string{".aws", ".azure", ".docker", ".gnupg", ".kube", ".mozilla", ".password-store", ".ssh", ".thunderbird", ".local/share/keyrings"}

// shared are folders of a home that hold the files of many programs.
var shared = []string{".local/bin", ".local/lib", ".local/share", ".local/state", "Library", "Library/Application Support"}

// many reports whether a folder is one of many programs or people, or holds one, or secrets.
func (n *naming) many(path string) bool {
	if slices.Contains(roots, path) || within(never, path) || n.holdsSecret(path) {
		return true
	}
	for _, home := range n.homes {
		rel, err := filepath.Rel(home, path)
		switch {
		case err != nil:
		case rel == ".", strings.HasPrefix(home, path+"/"):
			return true
		case !filepath.IsLocal(rel):
		case strings.HasPrefix(rel, ".") && !strings.Contains(rel, "/"), slices.Contains(shared, rel):
			return true
		default:
			for _, g := range guarded {
				if rel == g || strings.HasPrefix(rel, g+"/") {
					return true
				}
			}
		}
	}
	return filepath.Dir(path) == "/home" || filepath.Dir(path) == "/Users"
}

// holdsSecret reports whether the path is a secret, holds one or lies in one.
func (n *naming) holdsSecret(path string) bool {
	return within(n.secret, path) || slices.ContainsFunc(n.secret, func(s string) bool { return within([]string{path}, s) })
}

// readable are the folders that every program reads.
var readable = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// within reports whether the path is one of the folders or lies in one.
func within(folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return path == f || f == "/" || strings.HasPrefix(path, f+"/")
	})
}

func exists(elements ...string) bool {
	_, err := os.Stat(filepath.Join(elements...))
	return err == nil
}

// real returns the paths without links, as far as they exist.
func real(paths []string) (out []string) {
	for _, p := range paths {
		if p == "" {
			continue
		}
		abs, err := filepath.Abs(p)
		if err != nil {
			continue
		}
		out = append(out, abs)
		if to, err := filepath.EvalSymlinks(abs); err == nil && to != abs {
			out = append(out, to)
		}
	}
	return out
}

// homes returns the homes of this machine's users.
func homes() (out []string) {
	if home, err := os.UserHomeDir(); err == nil {
		out = append(out, home)
	}
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return real(out)
	}
	for in := bufio.NewScanner(bytes.NewReader(users)); in.Scan(); {
		if fields := strings.Split(in.Text(), ":"); len(fields) > 5 && filepath.IsAbs(fields[5]) && fields[5] != "/" {
			out = append(out, filepath.Clean(fields[5]))
		}
	}
	return real(out)
}
