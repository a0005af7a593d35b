package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/waggle-dev/waggle/services/tools/internal/scrub"
)

// maxSecret bounds the file of the secret.
const maxSecret = 64 << 10

// Config is a client of an authorization server.
type Config struct {
	ClientID string
	// Secret is the client's secret, File a file with it that is read for each token: one of both.
	Secret, File string
	Scopes       []string // empty = those that the server asks for
	TokenURL     string   // where tokens come from; empty = where the server says
}

// Check returns what is wrong with the client of a server at that address. Errors begin with the option.
func (c *Config) Check(server string) error {
	u, err := url.Parse(server)
	switch {
	case c.ClientID == "":
		return errors.New("oauth.client_id: set the client id known to the authorization server")
	case (c.Secret == "") == (c.File == ""):
		return errors.New("oauth.client_secret: set either client_secret or client_secret_file")
	case err != nil || u.Scheme != "https" && !onLoopback(u):
		return errors.New("url: must be https, or http on loopback: with oauth tokens are not sent in the clear")
	case c.TokenURL == "":
		return nil
	}
	if t, err := url.Parse(c.TokenURL); err != nil || t.Host == "" || t.Scheme != "https" && !onLoopback(t) {
		return errors.New("oauth.token_url: must be an https address, or http on loopback")
	}
	return nil
}

// secret returns the client's secret.
func (c *Config) secret() (string, error) {
	if c.File == "" {
		return c.Secret, nil
	}
	info, err := os.Stat(c.File)
	switch {
	case err != nil:
		return "", fmt.Errorf("oauth.client_secret_file: %w", err)
	case info.Size() > maxSecret:
		return "", fmt.Errorf("oauth.client_secret_file: %s is larger than %d bytes", c.File, maxSecret)
	}
	b, err := os.ReadFile(filepath.Clean(c.File))
	if err != nil {
		return "", fmt.Errorf("oauth.client_secret_file: %w", err)
	}
	if text := strings.TrimSpace(string(b)); text != "" {
		return text, nil
	}
	return "", fmt.Errorf("oauth.client_secret_file: %s is empty", c.File)
}

// Error is the reason for a missing token, without secrets.
type Error struct{ why string }

// Error implements error.
func (e *Error) Error() string { return "OAuth: " + e.why }

// Client has the tokens for one server. It is safe for concurrent use.
type Client struct {
	cfg    Config
	web    *web
	log    zerolog.Logger
	now    func() time.Time
	server *url.URL

	lock    chan struct{} // held while a token is read or fetched
	from    *source       // nil before the discovery
	token   string
	fetched time.Time
	renew   time.Time // zero: it has no end
	end     time.Time
	failure error     // of the last attempt; nil after a success
	failed  time.Time // when that was
	cleaner scrub.Scrubber
}

// source is where tokens come from.
type source struct {
	config *clientcredentials.Config
	found  bool // by discovery
}

// New returns a client for the server at that address, which has no secret parts. The configuration must be checked.
func New(cfg Config, server *url.URL, log zerolog.Logger) *Client {
	c := &Client{cfg: cfg, web: newWeb(server), log: log, now: time.Now, server: server, lock: make(chan struct{}, 1)}
	c.cleaner = scrub.New(cfg.Secret)
	if cfg.TokenURL != "" {
		c.from = &source{config: c.config(cfg.TokenURL, oauth2.AuthStyleAutoDetect, canonical(server), cfg.Scopes)}
	}
	return c
}

// config returns the settings of a request for tokens.
func (c *Client) config(address string, style oauth2.AuthStyle, resource string, scopes []string) *clientcredentials.Config {
	return &clientcredentials.Config{
		ClientID: c.cfg.ClientID, TokenURL: address, AuthStyle: style, Scopes: scopes, EndpointParams: url.Values{"resource": {resource}},
	}
}

// hostOf returns the host of an address, for people.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an unknown host"
	}
	return u.Host
}

// canonical returns the name of the server as a resource: its address without what says nothing of it.
func canonical(server *url.URL) string {
	u := url.URL{Scheme: strings.ToLower(server.Scheme), Host: strings.ToLower(server.Host), Path: server.Path}
	if u.Path == "/" {
		u.Path = ""
	}
	return u.String()
}
