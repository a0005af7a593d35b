package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// Team is the definition of a team; clients create it by its name.
type Team struct {
	Name        string       `yaml:"name" doc:"Name of the team; unique."`
	Description string       `yaml:"description,omitempty" doc:"Its description in lists of teams."`
	Role        string       `yaml:"role,omitempty" doc:"What the team is for."`
	Coordinator string       `yaml:"coordinator" doc:"The member that gets messages without a target: one of the team's own members, not a team."`
	Members     []TeamMember `yaml:"members"`
}

// TeamMember is a member with the built-in model, an agent of the swarm, or a team.
type TeamMember struct {
	Name             string   `yaml:"name" doc:"Name of the member; unique in its team."`
	Role             string   `yaml:"role,omitempty" doc:"Its role, which the other members are told."`
	Instructions     string   `yaml:"instructions,omitempty" doc:"Its instructions, in addition to the system prompt."`
	Model            string   `yaml:"model,omitempty" doc:"Its model, of any provider that a worker has access to; empty = that of the worker."`
	Tools            []string `yaml:"tools,omitempty" doc:"Tools it may call, as SERVER/TOOL or SERVER/*; empty = none but those of the team."`
	AutoExecuteTools bool     `yaml:"auto_execute_tools,omitempty" doc:"Run its tools without asking people first."`
	Agent            string   `yaml:"agent,omitempty" doc:"Name of the agent of the swarm that is this member."`
	Capabilities     []string `yaml:"capabilities,omitempty" doc:"Capabilities that an agent of the swarm needs to be this member."`
	Team             *Team    `yaml:"team,omitempty" doc:"The nested team that is this member, in the same form."`
}

// Definition converts the team for the team service.
func (t Team) Definition() event.TeamDefinition {
	members := make([]event.MemberDefinition, len(t.Members))
	for i, m := range t.Members {
		members[i] = event.MemberDefinition{
			Name: m.Name, Role: m.Role, Instructions: m.Instructions, Model: m.Model, Tools: m.Tools,
			AutoExecuteTools: m.AutoExecuteTools, Agent: m.Agent, Capabilities: m.Capabilities,
		}
		if m.Team != nil {
			nested := m.Team.Definition()
			members[i].Team = &nested
		}
	}
	return event.TeamDefinition{
		Name: t.Name, Description: t.Description, Role: t.Role, Coordinator: t.Coordinator, Members: members,
	}
}

// ReadTeam reads one definition, written as an element of the setting teams: YAML or JSON. It refuses unknown keys, naming
// their line, and leaves other checks to the team service.
func ReadTeam(text []byte) (event.TeamDefinition, error) {
	var t Team
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&t); errors.Is(err, io.EOF) {
		return event.TeamDefinition{}, errors.New("it contains no team")
	} else if err != nil {
		return event.TeamDefinition{}, readable(err)
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return event.TeamDefinition{}, errors.New("more than one YAML document")
	}
	return t.Definition(), nil
}

// teams validates the definitions of teams.
func (p *problems) teams(all []Team) {
	seen := map[string]bool{}
	for i, t := range all {
		at := fmt.Sprintf("teams[%d]", i)
		if seen[t.Name] {
			p.add(at+".name", "another team is already called %q", t.Name)
		}
		seen[t.Name] = true
		if err := teamwork.Check(t.Definition()); err != nil {
			p.team(at, err)
		}
	}
}

// team adds an error of a definition, with the path of the faulty part.
func (p *problems) team(at string, err error) {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		p.add(at, "%s", err)
		return
	}
	if f.Field != "" {
		at += "." + f.Field
	}
	p.add(at, "%s", f.Public())
}
