package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestADeletionIsConfirmed(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes\n": true, " y \n": true, "\n": false, "n\n": false, "": false, "yess\n": false} {
		var out bytes.Buffer
		require.Equal(t, want, confirmed(strings.NewReader(answer), &out, []string{"s1"}), answer)
		require.Equal(t, "Delete session s1 with all events? This cannot be undone. [y/N] ", out.String())
	}
	var out bytes.Buffer
	confirmed(strings.NewReader(""), &out, []string{"s1", "s2"})
	require.Contains(t, out.String(), "Delete 2 sessions with")
}

// TestSessionsAreDeleted: as a user does it, on a running "waggle up".
func TestSessionsAreDeleted(t *testing.T) {
	t.Parallel()
	i := start(t)
	for _, question := range []string{"what is in my workspace?", "keep this"} {
		answer, err := i.run(t, `waggle chat "`+question+`"`)
		require.NoError(t, err, answer)
	}
	list := func() (ids []string) {
		out, err := i.run(t, "waggle sessions list --json")
		require.NoError(t, err, out)
		var d struct {
			Sessions []struct {
				SessionID string `json:"session_id"`
				Question  string `json:"question"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(out), &d), out)
		for _, s := range d.Sessions {
			ids = append(ids, s.SessionID+" "+s.Question)
		}
		return ids
	}
	var all []string
	require.Eventually(t, func() bool {
		all = list()
		return len(all) == 2 && strings.HasSuffix(all[0], "keep this")
	}, maxWait, 50*time.Millisecond, "the index has both sessions")
	doomed, _, _ := strings.Cut(all[1], " ") // the newest comes first
	kept, _, _ := strings.Cut(all[0], " ")

	out, err := i.run(t, "waggle sessions delete "+doomed+" </dev/null")
	require.Error(t, err)
	require.Contains(t, out, "confirm with --yes")
	require.Len(t, list(), 2, "the command was not confirmed")
	out, err = i.run(t, "waggle sessions delete --yes nobody "+doomed)
	require.Error(t, err)
	require.Contains(t, out, doomed+" deleted\n")
	require.Contains(t, out, "nobody: This session does not exist")
	require.Equal(t, all[:1], list())
	out, err = i.run(t, "waggle sessions delete -y "+doomed)
	require.NoError(t, err, "once more: "+out)
	out, err = i.run(t, "waggle sessions show "+doomed)
	require.Error(t, err)
	require.Contains(t, out, "[SESSION_DELETED]")
	out, err = i.run(t, "waggle sessions show "+kept)
	require.NoError(t, err, out)
	require.Eventually(t, func() bool {
		out, err = i.run(t, "waggle audit --action deletion")
		require.NoError(t, err, out)
		return strings.Contains(out, doomed)
	}, maxWait, 50*time.Millisecond, "the audit log has the deletion")
}

// TestListsTakeALimitAndAState on the command line.
func TestListsTakeALimitAndAState(t *testing.T) {
	t.Parallel()
	i := start(t)
	for range 3 {
		answer, err := i.run(t, `waggle chat "what is in my workspace?"`)
		require.NoError(t, err, answer)
	}
	rows := func(command string) int {
		t.Helper()
		out, err := i.run(t, command+" --json")
		require.NoError(t, err, out)
		var d struct{ Sessions []struct{ State string } }
		require.NoError(t, json.Unmarshal([]byte(out), &d), out)
		for _, s := range d.Sessions {
			require.Equal(t, "completed", s.State)
		}
		return len(d.Sessions)
	}
	require.Eventually(t, func() bool { return rows("waggle sessions list --state completed") == 3 }, maxWait, time.Millisecond) // lists follow logs
	require.Equal(t, 3, rows("waggle sessions list"))
	require.Equal(t, 2, rows("waggle sessions list --limit 2"))
	require.Equal(t, 3, rows("waggle sessions list --state completed"))
	require.Equal(t, 1, rows("waggle sessions list --state completed --limit 1 --search WORKSPACE"))
	require.Equal(t, 0, rows("waggle sessions list --state failed"))
	require.Equal(t, 0, rows("waggle sessions list --search elsewhere"))
	for command, want := range map[string]string{
		"waggle sessions list --state failed": "no sessions",
		"waggle sessions list --limit 1":      "more exist: give a larger --limit",
		"waggle tasks list --state failed":    "no tasks",
		"waggle teams list --limit 1":         "no teams",
	} {
		out, err := i.run(t, command+" 2>&1")
		require.NoError(t, err, out)
		require.Contains(t, out, want, command)
	}
	out, err := i.run(t, "waggle sessions list --state lost 2>&1")
	require.Error(t, err)
	require.Contains(t, out, "state must be one of idle, running, waiting, completed, partly, failed, cancelled, unknown_outcome.")
	require.NotContains(t, out, "panic")
}
