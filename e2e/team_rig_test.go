package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// teamFleet is an installation in which teams work: a gateway and a process with all services.
type teamFleet struct {
	*fleet
	addr string
	nc   *nats.Conn
}

func newTeamFleet(t *testing.T, script scripted.Script) *teamFleet {
	t.Helper()
	c := &teamFleet{fleet: newFleet(t, script)}
	c.serve("session,pipeline,task,team,worker,tools")
	_, c.addr = c.gateway()
	c.nc = c.listen()
	process.Eventually(t, "the team service runs", func() bool { return process.Get(t, "http://"+c.addr+"/api/v1/teams").Status == http.StatusOK })
	return c
}

// ask sends an HTTP request and returns the answer, which has to have the status.
func (c *teamFleet) ask(method, path string, body any, status int, into any) {
	c.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(c.t, err)
	req, err := http.NewRequestWithContext(c.t.Context(), method, "http://"+c.addr+path, bytes.NewReader(raw))
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, status, resp.StatusCode, "%s", answer)
	if into != nil {
		require.NoError(c.t, json.Unmarshal(answer, into))
	}
}

// found makes a team and returns it once it is idle.
func (c *teamFleet) found(definition any) command.TeamView {
	c.t.Helper()
	var v command.TeamView
	c.ask(http.MethodPost, "/api/v1/teams", definition, http.StatusCreated, &v)
	process.Eventually(c.t, "the team is idle", func() bool {
		c.ask(http.MethodGet, "/api/v1/teams/"+v.TeamID, nil, http.StatusOK, &v)
		return v.Status == "IDLE"
	})
	return v
}

// watch shows a run to the end of the test, from its beginning.
func (c *teamFleet) watch(path string, envelope bool) *client.Team {
	c.t.Helper()
	var first uint64
	return client.WatchTeam(c.t, client.TeamOptions{Addr: c.addr, Path: path, After: &first, Envelope: envelope, Once: true})
}

// is accepts frames of the type that are about the route and whose members have the
// values, given as pairs.
func is(kind, route string, pairs ...string) func(client.TeamFrame) bool {
	return func(f client.TeamFrame) bool {
		if f.Type != kind || f.Route() != route {
			return false
		}
		for i := 0; i < len(pairs); i += 2 {
			if f.Text(pairs[i]) != pairs[i+1] {
				return false
			}
		}
		return true
	}
}
