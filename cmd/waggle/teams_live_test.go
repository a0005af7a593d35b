package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// example is the definition that is shipped.
const example = "cmd/waggle/project/templates/research-team/team.yaml"

// bring copies the example to where it is in the documents.
func bring(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", example))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(example)), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, example), text, 0o600))
}

func TestTheExampleIsATeam(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("../..", example))
	require.NoError(t, err)
	d, err := config.ReadTeam(text)
	require.NoError(t, err)
	require.NoError(t, teamwork.Check(d))
}

func TestTourOfTeams(t *testing.T) {
	t.Parallel()
	tour := page(t, "docs/TOUR.md")
	i := start(t)
	bring(t, i.dir)
	line := regexp.MustCompile(`(?m)^bin/waggle teams run -f .*$`).FindString(tour)
	require.NotEmpty(t, line)
	out, err := i.run(t, "echo y | "+line)
	require.NoError(t, err, out)
	for _, want := range []string{
		"Analyst answers: The workspace has 1 file", "library/Reader asks to run workspace_read_file\n  {\"path\":\"notes.md\"}\n",
		"library/Reader may run workspace_read_file", "library answers: Reader answers: notes.md has 45 words.", "research is IDLE",
	} {
		require.Contains(t, out, want)
	}
	require.True(t, strings.HasSuffix(strings.TrimSpace(out), "research is IDLE"), out)

	out, err = i.run(t, regexp.MustCompile(`(?m)^bin/waggle teams list$`).FindString(tour))
	require.NoError(t, err, out)
	team := regexp.MustCompile(`team_[0-9a-f]{16}`).FindString(out)
	require.NotEmpty(t, team, out)

	out, err = i.run(t, "bin/waggle teams run "+team+` "and what is 6*7?" --target Analyst`)
	require.NoError(t, err, out)
	require.Contains(t, out, "Analyst: 6*7 = 42")
	require.NotContains(t, out, "45 words", "what was before is not shown again")

	entity, err := id.ParseEntity(team)
	require.NoError(t, err)
	analyst, err := id.MemberAgent(entity, "Analyst")
	require.NoError(t, err)
	for _, path := range []string{
		"/ws?watch=team/" + team, "/ws/session?deltas=all&watch=team/" + team, "/ws/agent-team?watch=team/" + team, "/ws/asp/client?watch=team/" + team,
		"/ws/agent-team/" + team + "?after=0", "/ws/agent/" + analyst.String() + "?after=0", "/ws?watch=member/" + analyst.String(),
	} {
		i.shows(t, path, "6*7 = 42")
	}
	require.Equal(t, 1, strings.Count(i.all(t, team), "library/Reader asks to run"))
}

// shows reads from a socket until a frame holds the text, from the beginning.
func (i *installation) shows(t *testing.T, path, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+i.addr+path, nil) //nolint:bodyclose // Dial closes it
	require.NoError(t, err, path)
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 20)
	for {
		_, b, err := conn.Read(ctx)
		require.NoError(t, err, path)
		if strings.Contains(string(b), text) {
			return
		}
	}
}

// all shows a team from its beginning until it is idle, and closes it.
func (i *installation) all(t *testing.T, team string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	c := exec.CommandContext(ctx, "waggle", "teams", "watch", team, "--all")
	c.Dir, c.Env = i.dir, i.env()
	var out strings.Builder
	c.Stdout = &out
	require.NoError(t, c.Start())
	said, err := i.run(t, "waggle teams delete "+team)
	require.NoError(t, err, said)
	require.NoError(t, c.Wait())
	return out.String()
}

func TestTeamsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "waggle.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
teams:
  - name: pair
    description: Two who count.
    coordinator: One
    members: [{name: One}, {name: Two, role: counts}]
`), 0o600))
	i := start(t, "--config", file)
	ok := func(line string) string {
		t.Helper()
		out, err := i.run(t, line)
		require.NoError(t, err, out)
		return out
	}
	require.Contains(t, ok("waggle teams list"), "no teams\n\ncan be run by name: pair\n")
	out := ok(`waggle teams run pair 'give Two the task to count to 3'`)
	require.Contains(t, out, "Two: 1 2 3\n")
	require.Regexp(t, `Task: ✓ task_0001 count to 3 \(Two\), completed`, out)

	team := strings.TrimSpace(ok("waggle teams create pair"))
	require.Regexp(t, `^team_[0-9a-f]{16}$`, team)
	require.Contains(t, ok("waggle teams show "+team), "about   Two who count.\n")
	ok("waggle teams pause " + team)
	require.Eventually(t, func() bool { return strings.Contains(ok("waggle teams show "+team), "PAUSED") }, maxWait, 50*time.Millisecond)
	ok("waggle teams resume " + team)
	ok("waggle teams stop " + team + " --target One --reason enough")
	ok("waggle teams delete " + team)
	require.Eventually(t, func() bool { return !strings.Contains(ok("waggle teams list"), team) }, maxWait, 50*time.Millisecond)

	for line, want := range map[string]string{
		"waggle teams run nobody hello":              "unknown team \"nobody\"",
		"waggle teams run pair":                      "specify a message for the team",
		"waggle teams create":                        "specify either NAME or -f FILE",
		"waggle teams show team_0000000000000000":    "TEAM_NOT_FOUND",
		"waggle teams run --target Three pair hello": "MEMBER_NOT_FOUND",
		"echo 'name: x' | waggle teams create -f -":  "members",
		"echo 'nam: x' | waggle teams create -f -":   "unknown key \"nam\"",
	} {
		out, err := i.run(t, line)
		require.Error(t, err, line)
		require.Contains(t, out, want, line)
	}
}
