package teams

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

func TestTables(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	v := research
	v.Status, v.Error, v.CreatedAt, v.Definition.Description = event.TeamFailed, "Lead: no\x1b[31m luck", now.Add(-time.Hour), "about it"
	v.Members = []command.MemberView{
		{Name: "Lead", Route: "Lead", Kind: event.MemberAgent, Status: event.AgentError},
		{Name: "library", Route: "library", Kind: event.MemberTeam, Status: event.AgentUninitialized},
	}
	v.Board = []event.BoardTask{{TaskID: "task_0001", TaskName: "read", AssigneeName: "library", Status: event.BoardInProgress}}
	encode := func(v any) json.RawMessage {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		return raw
	}
	var b bytes.Buffer
	require.NoError(t, WriteList(&b, encode(command.TeamList{Teams: []command.TeamView{v}, Named: []string{"x", "y"}}), now))
	require.Equal(t, "TEAM    NAME      STATUS  MEMBERS                 AGE\n"+
		"team_1  research  ERROR   Lead, Analyst, library  1 h\n\ncan be run by name: x, y\n", b.String())
	b.Reset()
	require.NoError(t, WriteTeam(&b, encode(v), now))
	require.Equal(t, `team    team_1
name    research
status  ERROR
error   Lead: no luck
about   about it
age     1 h

research  ERROR
├─ Lead          error
├─ Analyst       not started
└─ library       not started
   ├─ Librarian  not started
   └─ Reader     not started
Tasks
  ▸ task_0001 read (library), in_progress
`, b.String())
	b.Reset()
	require.NoError(t, WriteList(&b, encode(command.TeamList{}), now))
	require.Equal(t, "no teams\n", b.String())
	require.Error(t, WriteList(&b, json.RawMessage(`[]`), now))
	require.Error(t, WriteTeam(&b, json.RawMessage(`{}`), now))
}
