package teamwork_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/teamwork"
)

func TestGoodDefinitions(t *testing.T) {
	for _, d := range []event.TeamDefinition{
		pair(), three(), nested(teamwork.MaxDepth),
		{Name: "swarm", Coordinator: "a", Members: []event.MemberDefinition{{Name: "a", Capabilities: []string{"code"}}, {Name: "b", Agent: "Coder"}}},
		{Name: "tools", Coordinator: "a", Members: []event.MemberDefinition{{Name: "a", Model: "m", Tools: []string{"files/*", "files/read"}, AutoExecuteTools: true}}},
	} {
		require.NoError(t, teamwork.Check(d))
	}
}

// nested is a team of teams, depth deep.
func nested(depth int) event.TeamDefinition {
	d := event.TeamDefinition{Name: fmt.Sprintf("level %d", depth), Coordinator: "a", Members: []event.MemberDefinition{{Name: "a"}}}
	if depth > 1 {
		below := nested(depth - 1)
		d.Members = append(d.Members, event.MemberDefinition{Name: "below", Team: &below})
	}
	return d
}

func TestBadDefinitionsNameThePlace(t *testing.T) {
	full := pair()
	for i := range teamwork.MaxMembers {
		full.Members = append(full.Members, event.MemberDefinition{Name: fmt.Sprint("m", i)})
	}
	with := func(m event.MemberDefinition) event.TeamDefinition {
		d := pair()
		d.Members = append(d.Members, m)
		return d
	}
	self := pair()
	for field, d := range map[string]event.TeamDefinition{
		"name":                 {Coordinator: "a", Members: []event.MemberDefinition{{Name: "a"}}},
		"members":              {Name: "x", Coordinator: "a"},
		"coordinator":          {Name: "x", Coordinator: "b", Members: []event.MemberDefinition{{Name: "a"}}},
		"members[2].name":      with(event.MemberDefinition{Name: "Lead"}),
		"members[2].tools[0]":  with(event.MemberDefinition{Name: "a", Tools: []string{"read"}}),
		"members[2].team.name": with(event.MemberDefinition{Name: "a", Team: &self}),
		"members[2]":           with(event.MemberDefinition{Name: "a", Agent: "x", Model: "m"}),
		"members[255]":         {},
		"members[2].team":      {},
		"members[1].team.coordinator": {Name: "x", Coordinator: "a", Members: []event.MemberDefinition{
			{Name: "a"}, {Name: "b", Team: &event.TeamDefinition{Name: "y", Coordinator: "z", Members: []event.MemberDefinition{{Name: "z", Team: func() *event.TeamDefinition { d := nested(1); return &d }()}}}},
		}},
	} {
		switch field {
		case "members[255]":
			d, field = full, fmt.Sprintf("members[%d]", teamwork.MaxMembers)
		case "members[2].team":
			deep := nested(teamwork.MaxDepth + 1)
			d, field = deep, strings.TrimPrefix(strings.Repeat(".members[1].team", teamwork.MaxDepth), ".")
		}
		err := teamwork.Check(d)
		require.ErrorIs(t, err, fault.New(fault.TeamInvalid), field)
		require.Equal(t, field, fault.From(err, "").Field)
	}
	for _, name := range []string{"", "a/b", " a", "a\n", "a\u202e", strings.Repeat("x", 65), "\xff"} {
		require.Error(t, teamwork.Check(event.TeamDefinition{Name: "x", Coordinator: name, Members: []event.MemberDefinition{{Name: name}}}), "%q", name)
	}
	require.Error(t, teamwork.Check(with(event.MemberDefinition{Name: "a", Instructions: strings.Repeat("x", 20<<10)})))
	require.Error(t, teamwork.Check(with(event.MemberDefinition{Name: "a", Agent: "b", Capabilities: []string{"c"}})))
}
