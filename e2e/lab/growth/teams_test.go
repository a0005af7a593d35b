package growth_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/lab/growth"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

var teams = flag.String("teams", "3,10", "members of teams, ascending")

// TestTeams prints what a team costs by its members: its creation, the first message to each member and the next ones, and the
// return of a viewer that missed ten frames.
func TestTeams(t *testing.T) {
	i := install(t)
	table := growth.NewTable("members", "create ms", "show ms", "first message to each ms", "for each ms", "one message ms", "return ms", "memory MiB")
	for _, n := range sizes(t, *teams) {
		began := time.Now()
		team := i.found(n)
		created := time.Since(began)
		var first uint64
		w := client.WatchTeam(t, client.TeamOptions{Addr: i.addr, Path: "agent-team/" + team, After: &first, Once: true})
		began = time.Now()
		i.speak(team, w, members(n))
		each := time.Since(began)
		one := median(*repeat, func() time.Duration {
			began := time.Now()
			i.speak(team, w, members(n)[n/2:n/2+1])
			return time.Since(began)
		})
		show := median(*repeat, func() time.Duration {
			began := time.Now()
			require.Equal(t, http.StatusOK, process.Get(t, "http://"+i.addr+"/api/v1/teams/"+team).Status)
			return time.Since(began)
		})
		frames := w.Frames()
		w.Close()
		back := median(*repeat, func() time.Duration {
			began := time.Now()
			v := client.WatchTeam(t, client.TeamOptions{Addr: i.addr, Path: "agent-team/" + team, After: &frames[len(frames)-11].Sequence, Once: true})
			defer v.Close()
			v.Until("a missed frame", func(client.TeamFrame) bool { return true })
			return time.Since(began)
		})
		table.Add(n, ms(created), ms(show), ms(each), ms(each)/float64(n), ms(one), ms(back), float64(i.memory()))
	}
	shown(t, "Teams", "Teams by their members: each member gets a message, sixteen concurrently, then one of them gets further ones.", table)
}

func members(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("Member", i)
	}
	return names
}

type object = map[string]any

// found creates a team and returns its id.
func (i *installation) found(n int) string {
	i.t.Helper()
	var all []object
	for _, name := range members(n) {
		all = append(all, object{"name": name, "role": strings.Repeat("does its part ", 5)})
	}
	var v command.TeamView
	i.post("/api/v1/teams", object{"name": fmt.Sprint("grown-", n), "coordinator": "Member0", "members": all}, http.StatusCreated, &v)
	return v.TeamID
}

// post sends a request to the API and reads its answer.
func (i *installation) post(path string, body object, status int, into any) {
	i.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(i.t, err)
	req, err := http.NewRequestWithContext(i.t.Context(), http.MethodPost, "http://"+i.addr+path, bytes.NewReader(raw))
	require.NoError(i.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(i.t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(i.t, err)
	require.Equal(i.t, status, resp.StatusCode, "%s", answer)
	require.NoError(i.t, json.Unmarshal(answer, into))
}

// atOnce bounds the messages that are under way.
const atOnce = 16

// speak sends each of the members a message and waits until all have answered.
func (i *installation) speak(team string, w *client.Team, to []string) {
	i.t.Helper()
	seq, waiting := w.Seq(), map[string]bool{}
	for len(to) > 0 || len(waiting) > 0 {
		for ; len(to) > 0 && len(waiting) < atOnce; to = to[1:] {
			waiting[to[0]] = true
			var accepted api.Accepted
			i.post("/api/v1/teams/"+team+"/messages", object{"content": "hello", "target": to[0]}, http.StatusOK, &accepted)
		}
		f := w.UntilAfter(seq, "a member answers", func(f client.TeamFrame) bool {
			return f.Type == "AGENT_STATUS" && f.Text("new_status") == "idle" && f.Text("trigger") == "run.completed" && waiting[f.Route()]
		})
		delete(waiting, f.Route())
		seq = f.Sequence
	}
}
