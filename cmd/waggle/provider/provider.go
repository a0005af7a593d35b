// Package provider checks a model provider by asking for the list of its models, the cheapest request with a key.
//
// A key in the environment never chooses the model, because it may be there for another program: the setting model does,
// and its default is the demo model.
package provider

import (
	"context"
	"fmt"
	"net/http"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/providers"
)

// Trouble is a fault of a model provider, with the remedy.
type Trouble struct {
	Is, Do string
	Maybe  bool // the provider answers and may work nevertheless
}

func (t *Trouble) Error() string { return t.Is }

// Provider is the source of a model.
type Provider struct {
	Name string
	URL  string // without secrets, for people
	env  string
	url  string
	head http.Header
}

// Of returns the provider of the configuration's model, nil for a model without one.
func Of(c config.Config) *Provider {
	l, ok, err := providers.ListingOf(c.Model, c.Providers.Env())
	if !ok {
		return nil
	}
	kind, _ := model.Provided(c.Model)
	p := &Provider{Name: kind, env: l.Env, url: l.URL, head: l.Header, URL: config.RedactURLs(l.URL)}
	if err != nil {
		p.url, p.URL = "", err.Error()
	}
	return p
}

// stays follows no redirect: the key is for the provider alone.
var stays = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Check returns nil if the provider answers, else a *Trouble.
func (p *Provider) Check(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return &Trouble{Is: p.URL + " is not a URL", Do: "correct " + p.env + "_BASE_URL"}
	}
	req.Header = p.head
	resp, err := stays.Do(req)
	if err != nil {
		return &Trouble{
			Is: fmt.Sprintf("%s cannot be reached at %s", p.Name, p.URL), Do: "check the network, a proxy, and " + p.env + "_BASE_URL",
		}
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return &Trouble{Is: fmt.Sprintf("%s refuses the key (%s)", p.Name, resp.Status), Do: "correct " + p.env + "_API_KEY"}
	}
	return &Trouble{
		Is:    fmt.Sprintf("%s answers at %s, but not to the question for its models (%s)", p.Name, p.URL, resp.Status),
		Do:    "ask something with \"waggle chat\" to be sure",
		Maybe: true,
	}
}

// Works is Check, but accepts doubtful answers: not all compatible servers list their models.
func (p *Provider) Works(ctx context.Context) error {
	err := p.Check(ctx)
	if t, ok := err.(*Trouble); ok && t.Maybe { //nolint:errorlint // of Check
		return nil
	}
	return err
}
