package teamwork

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Bounds of a definition.
const (
	// MaxDepth is the limit of nested teams: each level wraps an event of the innermost
	// member once more, and the result has to fit into a stored event.
	MaxDepth = 8
	// MaxMembers bounds the members of a team with all nested teams: the relay may follow
	// a log of each.
	MaxMembers = 512
	// maxName bounds a name, in characters: it is shown beside every line.
	maxName = 64
	// maxText bounds a role, a description or instructions, in bytes: they are in the
	// first event of the member's log, and go to the model with every request.
	maxText = 16 << 10
	// maxList bounds lists of tools and capabilities.
	maxList = 64
)

// Check returns why a team cannot work by the definition: a *fault.Fault TEAM_INVALID with the path
// of the invalid member.
func Check(d event.TeamDefinition) error {
	c := &checker{}
	return c.team(d, "", nil)
}

type checker struct{ members int }

func invalid(path, format string, a ...any) error {
	return fault.Newf(fault.TeamInvalid, format, a...).At(strings.TrimPrefix(path, "."))
}

func (c *checker) team(d event.TeamDefinition, path string, above []string) error {
	if err := checkName(d.Name, path+".name"); err != nil {
		return err
	}
	switch {
	case slices.Contains(above, d.Name):
		return invalid(path+".name", "The team %q would contain itself. Rename the nested team, or remove it.", d.Name)
	case len(above) >= MaxDepth:
		return invalid(path, "Teams can be nested %d deep. Remove some levels.", MaxDepth)
	case len(d.Members) == 0:
		return invalid(path+".members", "A team needs members. Add at least its coordinator.")
	}
	if err := checkTexts(path, d.Description, d.Role); err != nil {
		return err
	}
	seen := map[string]int{}
	for i, m := range d.Members {
		at := fmt.Sprintf("%s.members[%d]", path, i)
		if first, double := seen[m.Name]; double {
			return invalid(at+".name", "The name %q is also that of members[%d]. Names must be unique in a team.", m.Name, first)
		}
		seen[m.Name] = i
		if err := c.member(m, at, append(slices.Clone(above), d.Name)); err != nil {
			return err
		}
	}
	i, known := seen[d.Coordinator]
	switch {
	case !known:
		return invalid(path+".coordinator", "The coordinator %q is not a member. Use the name of one of the team's agents.", d.Coordinator)
	case d.Members[i].Team != nil:
		return invalid(path+".coordinator", "The coordinator %q is a team. Use the name of an agent.", d.Coordinator)
	}
	return nil
}

func (c *checker) member(m event.MemberDefinition, path string, above []string) error {
	if c.members++; c.members > MaxMembers {
		return invalid(path, "A team can have %d members, including nested ones. Remove some.", MaxMembers)
	}
	if err := checkName(m.Name, path+".name"); err != nil {
		return err
	}
	if err := checkTexts(path, m.Role, m.Instructions, m.Model, m.Agent); err != nil {
		return err
	}
	if err := checkKind(m, path); err != nil || m.Team == nil {
		return err
	}
	return c.team(*m.Team, path+".team", above)
}

// checkKind refuses a member that is of two kinds at once.
func checkKind(m event.MemberDefinition, path string) error {
	builtIn := m.Model != "" || len(m.Tools) > 0 || m.AutoExecuteTools
	switch {
	case m.Team != nil && (builtIn || m.Swarm() || m.Instructions != ""):
		return invalid(path, "A member that is a team can only have name, role and team. Remove the other fields.")
	case m.Swarm() && builtIn:
		return invalid(path, "An agent of the swarm brings its own model and tools. Remove model, tools and auto_execute_tools.")
	case m.Agent != "" && len(m.Capabilities) > 0:
		return invalid(path, "An agent of the swarm is found by name or by capabilities. Specify one of them.")
	case len(m.Tools) > maxList || len(m.Capabilities) > maxList:
		return invalid(path, "A member can have %d tools or capabilities. Remove some.", maxList)
	}
	return checkLists(m, path)
}

func checkLists(m event.MemberDefinition, path string) error {
	for i, t := range m.Tools {
		if server, tool, ok := strings.Cut(t, "/"); !ok || server == "" || tool == "" || len(t) > 2*maxName {
			return invalid(fmt.Sprintf("%s.tools[%d]", path, i), "Name a tool as <server>/<tool>, or use <server>/* for all tools of a server.")
		}
	}
	for i, name := range m.Capabilities {
		if name == "" || len(name) > maxName {
			return invalid(fmt.Sprintf("%s.capabilities[%d]", path, i), "A capability must have 1 to %d characters.", maxName)
		}
	}
	return nil
}

// checkName refuses what cannot be a step of a path or would not be shown.
func checkName(name, path string) error {
	switch {
	case name == "" || utf8.RuneCountInString(name) > maxName || !utf8.ValidString(name):
		return invalid(path, "A name must have 1 to %d characters.", maxName)
	case strings.ContainsRune(name, '/') || strings.ContainsFunc(name, hidden) || strings.TrimSpace(name) != name:
		return invalid(path, "A name must not contain a slash or control characters, or begin or end with a space.")
	}
	return nil
}

func hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

func checkTexts(path string, texts ...string) error {
	for _, t := range texts {
		if len(t) > maxText || !utf8.ValidString(t) {
			return invalid(path, "A text is too long or not UTF-8. Use %d KB at most.", maxText>>10)
		}
	}
	return nil
}
