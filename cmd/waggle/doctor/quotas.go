package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/quota"
)

const (
	// full is the share of a limit from which doctor warns.
	full = 0.8
	// shownUses bounds the lines about use; the JSON form has all.
	shownUses = 10
)

// quotas shows the limits in force and how much of them is used.
func quotas(ctx context.Context, p Patient, conn *bus.Conn) []Finding {
	const what = "quotas"
	policy := p.Config.Quota.Policy()
	f := Finding{Level: OK, What: what, Is: limitsOf(p)}
	var err error
	if f.Uses, err = quota.InUse(ctx, conn, policy, time.Now()); err != nil {
		f.Level, f.Do = Warn, "their use cannot be read: "+err.Error()
		return []Finding{f}
	}
	var tight []string
	for i, u := range f.Uses {
		if i < shownUses {
			f.Is += "\n" + useOf(u)
		}
		if u.Share() >= full {
			tight = append(tight, u.Resource+" of "+holderOf(u))
		}
	}
	if n := len(f.Uses) - shownUses; n > 0 {
		f.Is += fmt.Sprintf("\nand %d more (--json shows them)", n)
	}
	if len(tight) > 0 {
		f.Level = Warn
		f.Do = fmt.Sprintf("nearly used up: %s; look for a program that has run away, or raise the limit in quota.*", strings.Join(tight[:min(len(tight), shownUses)], ", "))
	}
	return []Finding{f}
}

// limitsOf describes the limits of the configuration.
func limitsOf(p Patient) string {
	c := p.Config
	out := "each principal: " + limits(quota.Limits(c.Quota.Principal)) + "\neach tenant: " + limits(quota.Limits(c.Quota.Tenant))
	if n := len(c.Quota.Tenants); n > 0 {
		out += fmt.Sprintf("\n%d tenants have limits of their own", n)
	}
	return out + fmt.Sprintf("\neach task: %d levels of children", c.Task.MaxDepth)
}

// limits lists the limits that are set.
func limits(l quota.Limits) string {
	var out []string
	add := func(n float64, of string) {
		if n > 0 {
			out = append(out, strconv.FormatFloat(n, 'f', -1, 64)+" "+of)
		}
	}
	add(float64(l.Connections), "connections")
	add(l.Messages, "messages a second")
	add(float64(l.Sessions), "sessions")
	add(float64(l.Tasks), "tasks")
	add(float64(l.Teams), "teams")
	add(float64(l.Tokens), "tokens a day")
	add(l.CostUSD, "dollars a day")
	add(float64(l.ToolCalls), "tool calls a day")
	add(l.Time.Seconds(), "seconds of work a day")
	add(float64(l.WorkspaceBytes>>20), "MiB of files")
	add(float64(l.Children), "children of a task")
	if len(out) == 0 {
		return "no limit"
	}
	return strings.Join(out, ", ")
}

func useOf(u quota.Use) string {
	return fmt.Sprintf("%s: %s of %s %s (%.0f %%)", holderOf(u), strconv.FormatFloat(u.Used, 'f', -1, 64), strconv.FormatFloat(u.Limit, 'f', -1, 64), u.Resource, 100*u.Share())
}

// holderOf names who uses a limit.
func holderOf(u quota.Use) string {
	if u.Principal == "" {
		return "tenant " + u.Tenant
	}
	return u.Principal + " of tenant " + u.Tenant
}
