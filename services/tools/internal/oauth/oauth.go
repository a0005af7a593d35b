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
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/oauth2"

	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/scrub"
)

const (
	// margin is how long before its end a token is replaced, a quarter of its life at most.
	margin = time.Minute
	// again is the shortest time between two tokens that the server has refused.
	again = time.Second
)

// Token returns the token for a request. It is empty until the source of tokens is known: the refusal of a request without
// one tells.
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
		c.log.Warn().Str(zerolog.ErrorFieldName, err.Error()).Msg("failed to refresh token; current token still valid")
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
		return c.token, nil // another request has renewed it, or renewing it does not help
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
		err = fmt.Errorf("it issues tokens of type %q, which are not supported", bound.Shorten(got.TokenType, bound.Title))
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
	e.Msg("tool server token fetched")
	return nil
}

// refusal returns why a token is missing. The answer itself is not told: it is the text of another server.
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
