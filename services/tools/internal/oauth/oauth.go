// Package oauth fetches tokens for MCP servers by the grant client_credentials: the operator has registered a client, and no
// person takes part. Tokens stay in memory; after a restart they are fetched anew.
//
// The server says where its authorization server is (RFC 9728, RFC 8414), and the secret goes there. So discovery stays with
// https, and away from networks that the server itself is not in; an operator who does not trust the server with that choice
// names the address of tokens.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/scrub"
)

const (
	// margin is how long before its end a token is replaced, a quarter of its life at most.
	margin = time.Minute
	// again is the shortest time between two tokens that the server has refused.
	again = time.Second
	// maxSecret bounds the file of the secret.
	maxSecret = 64 << 10
)

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
		return errors.New("oauth.client_id: name the client that the authorization server knows")
	case (c.Secret == "") == (c.File == ""):
		return errors.New("oauth.client_secret: give one of client_secret and client_secret_file")
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

// Error is why there is no token, without secrets.
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

// Token returns the token for a request. It is empty as long as nobody knows where tokens come from: the refusal of a request
// without one tells.
func (c *Client) Token(ctx context.Context) (string, error) {
	if err := c.enter(ctx); err != nil {
		return "", err
	}
	defer c.leave()
	now := c.now()
	if c.from == nil || c.token != "" && (c.renew.IsZero() || now.Before(c.renew)) {
		return c.token, nil
	}
	err := c.fetch(ctx, nil)
	if err != nil && c.token != "" && now.Before(c.end) {
		c.log.Warn().Str(zerolog.ErrorFieldName, err.Error()).Msg("keep token that ends soon")
		return c.token, nil
	}
	return c.token, err
}

// Renew returns the token for a repeat of a request that the server has refused with these challenges. It is the same token
// if another one would not help.
func (c *Client) Renew(ctx context.Context, refused string, challenges []string) (string, error) {
	if err := c.enter(ctx); err != nil {
		return "", err
	}
	defer c.leave()
	if c.token != refused || refused != "" && c.now().Sub(c.fetched) < again {
		return c.token, nil // another request has renewed it, or nobody can
	}
	err := c.fetch(ctx, challenges)
	if err != nil {
		c.token = ""
	}
	return c.token, err
}

// Clean removes the secret and the token from a text.
func (c *Client) Clean(text string) string {
	c.lock <- struct{}{}
	defer c.leave()
	return c.cleaner.Text(text, bound.Message)
}

func (c *Client) enter(ctx context.Context) error {
	select {
	case c.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Client) leave() { <-c.lock }

// fetch fetches a token, after the discovery of where it comes from. A failure counts for a moment: all requests of that time
// would fail alike. The caller holds the lock.
func (c *Client) fetch(ctx context.Context, challenges []string) error {
	if c.failure != nil && c.now().Sub(c.failed) < again {
		return c.failure
	}
	ctx, cancel := context.WithTimeout(ctx, webTimeout)
	defer cancel()
	err := c.get(ctx, challenges)
	if c.failure, c.failed = nil, c.now(); err != nil {
		c.failure = &Error{c.cleaner.Text(err.Error(), bound.Message)}
		if c.from != nil && c.from.found {
			c.from = nil // it may have moved
		}
	}
	return c.failure
}

func (c *Client) get(ctx context.Context, challenges []string) (err error) {
	secret, err := c.cfg.secret()
	if err != nil {
		return err
	}
	c.cleaner = scrub.New(secret, c.token)
	if c.from == nil {
		if c.from, err = c.discover(ctx, challenges); err != nil {
			return err
		}
	}
	config := c.from.config
	config.ClientSecret = secret
	got, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, c.web.client(config.TokenURL, c.from.found, false)))
	if err == nil && !strings.EqualFold(got.Type(), "bearer") {
		err = fmt.Errorf("it gives tokens of type %q, which cannot be used", bound.Shorten(got.TokenType, bound.Title))
	}
	if err != nil {
		return fmt.Errorf("the authorization server at %s: %s", hostOf(config.TokenURL), refusal(err))
	}
	now := c.now()
	c.token, c.fetched, c.renew, c.end = got.AccessToken, now, time.Time{}, time.Time{}
	c.cleaner = scrub.New(secret, c.token)
	e := c.log.Info().Str("from", hostOf(config.TokenURL)).Strs("scopes", config.Scopes)
	if !got.Expiry.IsZero() {
		life := time.Until(got.Expiry).Round(time.Second)
		c.end, c.renew = now.Add(life), now.Add(life-min(margin, life/4))
		e = e.Dur("lives", life)
	}
	e.Msg("fetch token for tool server")
	return nil
}

// refusal returns why there is no token. The answer itself is not told: it is the text of another server.
func refusal(err error) string {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		if u, ok := errors.AsType[*url.Error](err); ok {
			return u.Err.Error()
		}
		return err.Error()
	}
	what := map[string]string{
		"invalid_client":         "it refuses the client; look at oauth.client_id and its secret",
		"unauthorized_client":    "the client may not fetch tokens by client_credentials; allow that there",
		"unsupported_grant_type": "it gives no tokens by client_credentials",
		"invalid_scope":          "it refuses the scopes; look at oauth.scopes",
		"invalid_target":         "it refuses the server as the resource of a token",
	}[refused.ErrorCode]
	if what == "" {
		what = fmt.Sprintf("it answers %d %s", refused.Response.StatusCode, http.StatusText(refused.Response.StatusCode))
	}
	if refused.ErrorCode != "" {
		what += " (" + bound.Shorten(refused.ErrorCode, bound.Title)
		if refused.ErrorDescription != "" {
			what += ": " + bound.Shorten(refused.ErrorDescription, bound.Title)
		}
		what += ")"
	}
	return what
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
