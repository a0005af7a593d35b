package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConnectionsAreListed on the command line, of a running "waggle up".
func TestConnectionsAreListed(t *testing.T) {
	t.Parallel()
	i := start(t)
	out, err := i.run(t, "waggle connections")
	require.NoError(t, err, out)
	require.Equal(t, "no connections\n", out)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.addr+"/api/v1/live", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	require.Equal(t, http.StatusOK, res.StatusCode)
	out, err = i.run(t, "waggle connections")
	require.NoError(t, err, out)
	require.Regexp(t, `CONNECTION +GATEWAY +PROTOCOL .*\n.* events +anonymous .* announcements +0 missed\n$`, out)
	out, err = i.run(t, "waggle connections --lagging --json")
	require.NoError(t, err, out)
	require.Contains(t, out, `"total":0,"connections":[],"missing":[]`)
	out, err = i.run(t, "waggle connections --limit 501")
	require.Error(t, err)
	require.Contains(t, out, "limit must be a number from 1 to 500")
}
