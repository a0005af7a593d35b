package checkup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/api"
)

// Roles judges the roles, the models and the tool servers of the running processes.
func Roles(s api.Status) []Finding {
	return slices.Concat(replicas(s), answering(s), toolServers(s))
}

// replicas checks that every role has a replica.
func replicas(s api.Status) []Finding {
	const what = "roles"
	var present, missing []string
	for _, r := range s.Services {
		if r.Replicas > 0 {
			present = append(present, fmt.Sprintf("%s %d", r.Name, r.Replicas))
		} else {
			missing = append(missing, r.Name)
		}
	}
	if len(missing) == 0 {
		return One(OK, what, strings.Join(present, ", "), "")
	}
	is := "not running: " + strings.Join(missing, ", ")
	if len(present) > 0 {
		is += "; running: " + strings.Join(present, ", ")
	}
	return One(Warn, what, is, "start them: waggle serve --role "+strings.Join(missing, ","))
}

// answering checks the models of the running workers, independently of this environment.
func answering(s api.Status) []Finding {
	const what = "models"
	if len(s.Models) == 0 {
		return nil // the finding about roles reports it
	}
	var lines, bad, lacking []string
	for _, m := range s.Models {
		line := fmt.Sprintf("%s answers, with %d workers", m.Name, m.Workers)
		if m.Workers == 1 {
			line = m.Name + " answers, with 1 worker"
		}
		if m.Trouble != "" {
			line = m.Name + " cannot answer: " + m.Trouble
			bad = append(bad, m.Name)
		}
		lines = append(lines, line)
		for _, l := range m.LeftOut {
			lacking = append(lacking, m.Name)
			lines = append(lines, fmt.Sprintf("%s is not offered %s: %s", m.Name, cmp.Or(l.Tool, "any tool"), l.Why))
		}
	}
	if len(bad) > 0 {
		return One(Fail, what, strings.Join(lines, "\n"), "mend what the workers of "+strings.Join(bad, ", ")+
			" say: their network, the key or the base URL; they look again every minute")
	}
	if len(lacking) > 0 {
		return One(Warn, what, strings.Join(lines, "\n"), "change the schemas of the tools, or choose a model whose service takes them")
	}
	return One(OK, what, strings.Join(lines, "\n"), "")
}

// toolServers checks the connections of the running tool services to their servers, and the tools of these.
func toolServers(s api.Status) []Finding {
	const what = "tool servers"
	var up, wrong, do []string
	for _, t := range s.ToolServers {
		if t.Down > 0 {
			line := fmt.Sprintf("%s is down on %d of %d replicas", t.Name, t.Down, t.Replicas)
			if t.Trouble != "" {
				line += ": " + t.Trouble
			}
			wrong = append(wrong, line)
			do = []string{"see the log of the role tools; correct the server's command or url in tools.servers, or start it"}
		} else {
			up = append(up, t.Name)
		}
	}
	down := len(wrong)
	for _, t := range s.ToolServers {
		for _, l := range t.LeftOut {
			if l.Tool == "" {
				l.Tool = "tools"
			}
			wrong = append(wrong, fmt.Sprintf("%s offers without %s: %s", t.Name, l.Tool, l.Why))
		}
	}
	if len(wrong) > down {
		do = append(do, "a fault of a tool is one of its server: update it, or tell its makers")
	}
	switch {
	case len(wrong) > 0:
		return One(Warn, what, strings.Join(wrong, "\n"), strings.Join(do, "\n"))
	case len(up) > 0:
		return One(OK, what, "connected: "+strings.Join(up, ", "), "")
	}
	return nil
}
