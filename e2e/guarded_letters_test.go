package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// guardedLetters has services give commands up that they cannot read or that no gateway has signed. An operator sends them
// again, which ends in the same way, and discards them: each role returns commands to its own queue, the gateway those of
// clients.
func guardedLetters(t *testing.T, g *guarded, addr string) {
	given := map[string]bool{}
	for _, one := range []struct {
		from          permission.Role
		service, verb id.Name
		principal     string
	}{
		{permission.Worker, cmd.Session, cmd.Close, "ann"},
		{permission.Pipeline, cmd.Worker, cmd.DoJob, ""},
		{permission.Pipeline, cmd.Task, cmd.CreateTask, ""},
		{permission.Worker, cmd.Team, cmd.ActTeam, ""},
		{permission.Team, cmd.Member, cmd.SendMessage, "ann"},
		{permission.Gateway, cmd.Pipeline, cmd.SendMessage, "ann"},
		{permission.Gateway, cmd.Team, cmd.Cancel, "ann"},
	} {
		c := cmd.Command{
			ID: "one", Service: one.service, Verb: one.verb, Tenant: id.DefaultTenant, Key: id.EntityFromExternal("letter-" + one.service.String() + "-" + one.verb.String()),
			Principal: one.principal, Data: json.RawMessage(`"nothing of that kind"`),
		}
		given[c.Key.String()] = true
		body, err := json.Marshal(c)
		require.NoError(t, err)
		nc, _ := g.dial(one.from)
		require.NoError(t, nc.Publish(subject.DefaultPartitions.Command(c.Address()), body))
		require.NoError(t, nc.Flush())
	}
	first := awaitLetters(t, addr, given, map[string]uint64{})
	for _, seq := range first {
		require.Contains(t, ask(t, http.MethodPost, fmt.Sprintf("http://%s/api/v1/dead-letters/%d/resend", addr, seq), "", ""), "202 ")
	}
	again := awaitLetters(t, addr, given, first)
	for _, seq := range again {
		require.Contains(t, ask(t, http.MethodDelete, fmt.Sprintf("http://%s/api/v1/dead-letters/%d", addr, seq), "", ""), "204 ")
	}
	require.Empty(t, lettersOf(t, addr, given))
	require.Contains(t, over(t, http.MethodGet, "http://"+addr+"/api/v1/queues", ""), `"service":"task-call"`)
	require.Contains(t, over(t, http.MethodGet, "http://"+addr+"/api/v1/quotas", ""), `"resource":"tokens"`)
	require.Contains(t, over(t, http.MethodGet, "http://"+addr+"/api/v1/config", ""), `"source":"environment"`)
	process.Eventually(t, "what the operator did is in the audit log", func() bool {
		text := over(t, http.MethodGet, "http://"+addr+"/api/v1/audit?action=api-call&limit=500", "")
		return strings.Count(text, "/resend") == len(given) && strings.Count(text, `"verb":"DELETE"`) >= len(given)
	})
}

// awaitLetters waits until each key has a dead letter other than the one before, and returns them.
func awaitLetters(t *testing.T, addr string, of map[string]bool, before map[string]uint64) (now map[string]uint64) {
	t.Helper()
	process.Eventually(t, "all commands are dead letters", func() bool {
		now = lettersOf(t, addr, of)
		for key, seq := range now {
			if before[key] == seq {
				return false
			}
		}
		return len(now) == len(of)
	})
	return now
}

func lettersOf(t *testing.T, addr string, of map[string]bool) map[string]uint64 {
	t.Helper()
	text := over(t, http.MethodGet, "http://"+addr+"/api/v1/dead-letters?limit=100", "")
	var list api.DeadLetterList
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(text, "200 ")), &list), text)
	out := map[string]uint64{}
	for _, l := range list.DeadLetters {
		if of[l.Key] {
			out[l.Key] = l.Seq
		}
	}
	return out
}
