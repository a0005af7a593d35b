package cells_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
)

func dialOptions(key string) *websocket.DialOptions {
	return &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + key}}}
}

// TestAnyGatewayServesAnyTenant: sockets, requests and streams of events of both tenants work through both gateways, and each
// cell holds the sessions of its own tenant only.
func TestAnyGatewayServesAnyTenant(t *testing.T) {
	t.Parallel()
	s := sharedSite(t)
	for _, key := range []string{redKey, blueKey} {
		for _, at := range []string{"a", "b"} {
			process.Eventually(t, "the directory", func() bool { return s.ask(at, key, http.MethodGet, "/api/v1/sessions").status == http.StatusOK })
			c := s.talk(at, key)
			require.NoError(t, c.ask("What is 12 + 30?"), "%s through %s", key, at)
			for _, through := range []string{"a", "b"} {
				got := s.ask(through, key, http.MethodGet, "/api/v1/sessions/"+c.client.Session())
				require.Equal(t, http.StatusOK, got.status, got.body)
				s.streams(through, key, c.client.Session())
				s.watch(through, key, c.client.Session()).exact(t, s.replay(through, key, c.client.Session(), 1))
			}
		}
	}
	list := s.command("a", "cells", "list")
	require.Contains(t, list, "tenant blue b")
	require.Contains(t, list, "all other tenants a")
}

// TestCredentialsMayComeWithTheFirstMessage: also those of tenants that another cell serves.
func TestCredentialsMayComeWithTheFirstMessage(t *testing.T) {
	t.Parallel()
	s := sharedSite(t)
	for _, key := range []string{redKey, blueKey} {
		for _, at := range []string{"a", "b"} {
			c := client.DialOrbit(t, "ws://"+s.cells[at].addr+"/ws?language=en_US")
			c.Send(`{"type":"auth","token":"` + key + `"}`)
			c.Until("agent_ready")
			c.Ask("What is 12 + 30?")
			require.Contains(t, c.Until("agent_response").Raw, "42", "%s at %s", key, at)
			require.Equal(t, http.StatusOK, s.ask(at, key, http.MethodGet, "/api/v1/sessions/"+c.Session).status)
			c.Close()
		}
	}
}

// streams requires that the stream of events of a session begins with its first event.
func (s *site) streams(cell, key, session string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.cells[cell].addr+"/api/v1/sessions/"+session+"/stream", http.NoBody)
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	require.Contains(s.t, resp.Header.Get("Content-Type"), "text/event-stream")
	require.Len(s.t, resp.Header.Values("Cache-Control"), 1)
	line := make([]byte, 1)
	_, err = resp.Body.Read(line) // while the stream continues
	require.NoError(s.t, err)
}

// TestAStrangersHopHeaderGrantsNothing: a request that claims to have been forwarded is not forwarded, and gets no more than
// one without credentials.
func TestAStrangersHopHeaderGrantsNothing(t *testing.T) {
	t.Parallel()
	s := sharedSite(t)
	for _, c := range []struct {
		key    string
		status int
		title  string
	}{
		{blueKey, http.StatusServiceUnavailable, "TENANT_MOVING"},
		{redKey, http.StatusOK, ""},
		{"wrong", http.StatusUnauthorized, "UNAUTHENTICATED"},
	} {
		got := s.claim("a", c.key)
		require.Equal(t, c.status, got.status, got.body)
		require.Equal(t, c.title, got.title)
	}
}
