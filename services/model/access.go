package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Access is the access to one provider. The zero value is the provider's own server without a key.
type Access struct {
	Key       string   // may be empty for servers that need none
	BaseURL   string   // another server that speaks the provider's protocol; empty = the provider's own
	KeyHeader string   // the header of the key, without "Bearer"; empty = the provider's standard
	Headers   []string // further headers, each "Name: value"
	Query     string   // added to each URL, such as "api-version=2024-10-21"
	Proxy     string   // http, https or socks5 URL; empty = as the environment of the process says
	Body      string   // a JSON object: members that are added to each request
}

// String hides everything: headers, bodies and addresses may hold secrets.
func (a Access) String() string { return "model.Access{...}" }

// GoString hides everything.
func (a Access) GoString() string { return a.String() }

// Header returns the further headers.
func (a Access) Header() (http.Header, error) {
	out := http.Header{}
	for i, line := range a.Headers {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t\r\n") || strings.ContainsAny(value, "\r\n") {
			return nil, fmt.Errorf("header %d is not of the form \"Name: value\"", i+1)
		}
		out.Add(name, strings.TrimSpace(value))
	}
	return out, nil
}

// Members returns the members that are added to each request.
func (a Access) Members() (map[string]json.RawMessage, error) {
	if strings.TrimSpace(a.Body) == "" {
		return nil, nil
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil || out == nil {
		return nil, errors.New("body is not a JSON object")
	}
	for _, own := range []string{"messages", "stream", "tools", "model"} {
		if _, ok := out[own]; ok {
			return nil, fmt.Errorf("body cannot replace %q", own)
		}
	}
	return out, nil
}

// URL returns the address of an endpoint below the base URL, or below standard without one, with the query.
func (a Access) URL(standard, endpoint string) (*url.URL, error) {
	base := a.BaseURL
	if base == "" {
		base = standard
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("base_url is not an http or https address")
	}
	query, err := url.ParseQuery(a.Query)
	if err != nil {
		return nil, errors.New("query is not of the form name=value&name=value")
	}
	own := u.Query()
	u = u.JoinPath(endpoint)
	for name, values := range query {
		own[name] = append(own[name], values...)
	}
	u.RawQuery = own.Encode()
	return u, nil
}

// ProxyURL returns the proxy; nil without one.
func (a Access) ProxyURL() (*url.URL, error) {
	if a.Proxy == "" {
		return nil, nil
	}
	u, err := url.Parse(a.Proxy)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil, errors.New("proxy is not an http, https or socks5 address")
	}
	return u, nil
}

// Secrets returns the texts that no error and no log may hold.
func (a Access) Secrets() []string {
	out := []string{a.Key}
	for _, line := range a.Headers {
		if _, value, ok := strings.Cut(line, ":"); ok {
			out = append(out, strings.TrimSpace(value))
		}
	}
	for _, address := range []string{a.BaseURL, a.Proxy} {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			password, _ := u.User.Password()
			out = append(out, password)
		}
	}
	query, _ := url.ParseQuery(a.Query)
	for name, values := range query {
		if strings.Contains(strings.ToLower(name), "key") {
			out = append(out, values...)
		}
	}
	return out
}
