// Package console has the pages of the web console, and serves them.
//
// The folder dist is what "make console" builds of src, compressed as browsers get it. It is committed, so that Go alone builds Waggle.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
)

//go:embed all:dist
var dist embed.FS

const (
	// policy lets the page load what this gateway serves, and nothing else. No script makes elements of texts.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' blob:; connect-src 'self'%s; worker-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types waggle-worker; " +
		// Browsers know report-uri at any address. They take report-to at https only, and no longer look at report-uri then.
		"report-uri /api/v1/csp-reports"
	permissions = "camera=(), microphone=(), geolocation=(), payment=(), usb=(), clipboard-write=(self)"

	index = "index.html"
	// assets is the folder of files whose names change with their contents.
	assets = "assets/"
)

// rooms are the first parts of the paths that the page answers itself.
var rooms = []string{"", "sessions", "compare", "questions", "teams", "swarm", "installation", "login"}

// Pages are the files of the console. They are safe for concurrent use.
type Pages struct {
	files  map[string]file // by path without the first slash
	policy string
}

type file struct {
	media, tag    string
	plain, zipped []byte // zipped is nil for a small file
}

// New reads the files. Besides this gateway the pages may connect to the origins: to sign in, and in a demonstration.
func New(origins ...string) (*Pages, error) {
	root, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, fmt.Errorf("open the console's files: %w", err)
	}
	return load(root, origins...)
}

func load(root fs.FS, origins ...string) (*Pages, error) {
	connect := ""
	for _, o := range origins {
		connect += " " + o
	}
	p := &Pages{files: map[string]file{}, policy: fmt.Sprintf(policy, connect)}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		name, zipped := strings.CutSuffix(name, ".gz")
		p.files[name], err = newFile(name, b, zipped)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the console's files: %w", err)
	}
	if _, ok := p.files[index]; !ok {
		return nil, fmt.Errorf("read the console's files: %s is missing", index)
	}
	return p, nil
}

// newFile returns a file, whose bytes are compressed if zipped is set.
func newFile(name string, b []byte, zipped bool) (file, error) {
	f := file{media: mime.TypeByExtension(path.Ext(name)), plain: b}
	if zipped {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return f, err
		}
		if f.plain, err = io.ReadAll(r); err != nil {
			return f, err
		}
		f.zipped = b
	}
	sum := sha256.Sum256(f.plain)
	f.tag = `"` + hex.EncodeToString(sum[:8]) + `"`
	if f.media == "" {
		f.media = "application/octet-stream"
	}
	return f, nil
}

// Serves reports whether the request is for the console: for one of its files, or for one of its rooms by a browser that
// shows it. Every other request belongs to the API.
func (p *Pages) Serves(r *http.Request) bool {
	_, ok := p.file(r)
	return ok
}

func (p *Pages) file(r *http.Request) (file, bool) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return file{}, false
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if f, ok := p.files[name]; ok && name != index {
		return f, true
	}
	room, _, _ := strings.Cut(name, "/")
	if !slices.Contains(rooms, room) || !shows(r) {
		return file{}, false
	}
	return p.files[index], true
}

// shows reports whether the request is that of a browser for a page to show.
func shows(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// Lost answers a browser that asks for a page which does not exist with one that leads back, and reports whether it has answered.
func (p *Pages) Lost(w http.ResponseWriter, r *http.Request) bool {
	if !shows(r) {
		return false
	}
	p.write(w, r, p.files[index], http.StatusNotFound)
	return true
}

// ServeHTTP serves a request that Serves has accepted.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := p.file(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	p.write(w, r, f, http.StatusOK)
}

func (p *Pages) write(w http.ResponseWriter, r *http.Request, f file, status int) {
	head := w.Header()
	head.Set("Content-Type", f.media)
	head.Set("Content-Security-Policy", p.policy)
	head.Set("Permissions-Policy", permissions)
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Embedder-Policy", "require-corp")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Add("Vary", "Accept, Accept-Encoding")
	head.Set("ETag", f.tag)
	cache := "no-cache" // ask each time whether it is still the same
	if strings.HasPrefix(r.URL.Path, "/"+assets) {
		cache = "public, max-age=31536000, immutable"
	}
	head.Set("Cache-Control", cache)
	if status == http.StatusOK && r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if f.zipped != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		head.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	head.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // a browser that has gone does not matter
}
