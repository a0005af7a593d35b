package config

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

const nested = `
teams:
  - name: research
    description: d
    role: r
    coordinator: Lead
    members:
      - {name: Lead, role: a, instructions: b, model: "openai:x", tools: [workspace/*], auto_execute_tools: true}
      - {name: Bot, agent: shouter}
      - {name: Any, capabilities: [x, y]}
      - name: library
        team: {name: library, coordinator: L, members: [{name: L}]}
`

func TestTeamsAreReadAsTheProtocolHasThem(t *testing.T) {
	l, err := Load(Input{File: write(t, nested)})
	require.NoError(t, err)
	require.NoError(t, l.Validate(everything))
	got, err := json.Marshal(l.Teams[0].Definition())
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"research","description":"d","role":"r","coordinator":"Lead","members":[
		{"name":"Lead","role":"a","instructions":"b","model":"openai:x","tools":["workspace/*"],"auto_execute_tools":true},
		{"name":"Bot","agent":"shouter"},{"name":"Any","capabilities":["x","y"]},
		{"name":"library","team":{"name":"library","coordinator":"L","members":[{"name":"L"}]}}]}`, string(got))

	again, err := ReadTeam(got) // JSON is YAML
	require.NoError(t, err)
	require.Equal(t, l.Teams[0].Definition(), again)
}

func TestATeamThatCannotWorkIsNamedWithItsPath(t *testing.T) {
	for text, want := range map[string]string{
		"teams: [{name: a, coordinator: x, members: [{name: y}]}]":                                                          "teams[0].coordinator: ",
		"teams: [{name: a, coordinator: x}]":                                                                                "teams[0].members: ",
		"teams: [{coordinator: x, members: [{name: x}]}]":                                                                   "teams[0].name: ",
		"teams: [{name: a, coordinator: x, members: [{name: x}]}, {name: a, coordinator: x, members: [{name: x}]}]":         "teams[1].name: another team is already called \"a\"",
		"teams: [{name: a, coordinator: x, members: [{name: x}, {name: x}]}]":                                               "teams[0].members[1].name: ",
		"teams: [{name: a, coordinator: x, members: [{name: x}, {name: y, team: {name: b, coordinator: z}}]}]":              "teams[0].members[1].team.members: ",
		"teams: [{name: a, coordinator: x, members: [{name: x}, {name: y, team: {name: a, coordinator: z, members: []}}]}]": "teams[0].members[1].team.name: ",
	} {
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err, text)
		require.ErrorContains(t, l.Validate(everything), want, text)
		require.NoError(t, l.Validate(For{Roles: []string{RoleTask}}), "who does not lead teams does not look")
	}
	_, err := Load(Input{File: write(t, "teams:\n  - name: a\n    members:\n      - {name: x, coordinator: y}\n")})
	require.ErrorContains(t, err, `line 4: unknown key "coordinator" in teams[].members[]`)
}

func TestAFileIsOneTeam(t *testing.T) {
	d, err := ReadTeam([]byte("name: a\ncoordinator: x\nmembers: [{name: x}]\n"))
	require.NoError(t, err)
	require.Equal(t, event.TeamDefinition{Name: "a", Coordinator: "x", Members: []event.MemberDefinition{{Name: "x"}}}, d)
	for text, want := range map[string]string{
		"":                      "no team",
		"name: a\n---\nname: b": "more than one",
		"nam: a":                `unknown key "nam" in teams[]`,
		"[1]":                   "line 1",
	} {
		_, err := ReadTeam([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}
