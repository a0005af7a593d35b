package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// Login names the server and the credentials.
type Login struct {
	URL      string // of the chat or of the server: the path is that of clients
	Token    string
	Identity string // file that remembers which client this is at each server; empty = it is not remembered
}

// Client is this user's client of the swarm. It is the same in every command, because only the
// client that created a task may watch or cancel it.
type Client struct {
	*swarm.Client
	login  Login
	silent bool // shows no events; a later command shows them
}

// Connect connects as the client of the last command, or as a new one if the server no longer
// knows that one. event gets all events and may be nil.
func Connect(ctx context.Context, l Login, event func(swarm.Event)) (*Client, error) {
	target, err := clientURL(l.URL)
	if err != nil {
		return nil, err
	}
	l.URL = target
	known, err := l.read()
	if err != nil {
		return nil, err
	}
	opt := swarm.ClientOptions{
		Options: swarm.Options{URL: l.URL, Token: l.Token}, Name: "waggle", Type: "cli", OnEvent: event,
	}
	if r, ok := known[l.URL]; ok {
		opt.Resume = &r
		if c, err := swarm.Dial(ctx, opt); err == nil {
			return &Client{c, l, event == nil}, nil
		}
		opt.Resume = nil
	}
	c, err := swarm.Dial(ctx, opt)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, socket.Unreachable(l.URL, err)
	}
	if err != nil {
		return nil, err
	}
	return &Client{c, l, event == nil}, nil
}

// clientURL returns the address of clients beside that of the chat.
func clientURL(chat string) (string, error) {
	u, err := url.Parse(chat)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is not a ws:// or wss:// URL", chat)
	}
	path := strings.TrimSuffix(u.Path, "/")
	if !strings.HasSuffix(path, "/ws/asp/client") {
		path = strings.TrimSuffix(strings.TrimSuffix(path, "/session"), "/ws") + "/ws/asp/client"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}).String(), nil
}

// Close ends the connection and remembers who this was.
func (c *Client) Close() error {
	_ = c.Client.Close() // it has no error
	r := c.Resume()
	if c.login.Identity == "" || r.Token == "" {
		return nil
	}
	known, err := c.login.read()
	if err != nil {
		return err
	}
	if before := known[c.login.URL]; c.silent && before.ClientID == r.ClientID {
		r.After = before.After
	} else if c.silent {
		r.After = 0
	}
	known[c.login.URL] = r
	b, err := json.Marshal(known)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(c.login.Identity), 0o700)
	}
	if err == nil {
		err = replace(c.login.Identity, b)
	}
	if err != nil {
		return fmt.Errorf("remember the client: %w", err)
	}
	return nil
}

// replace writes a file of secrets at once: another command may read it now.
func replace(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".client-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// read returns the clients of all servers.
func (l Login) read() (map[string]swarm.Resume, error) {
	known := map[string]swarm.Resume{}
	if l.Identity == "" {
		return known, nil
	}
	b, err := os.ReadFile(filepath.Clean(l.Identity))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return known, nil
	case err == nil:
		err = json.Unmarshal(b, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("the identity file %s is invalid: %w", l.Identity, err)
	}
	return known, nil
}
