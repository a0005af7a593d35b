package event_test

import (
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

func TestNeedsPerson(t *testing.T) {
	t.Parallel()
	always := &event.ToolPolicy{Approval: event.ApprovalAlways}
	writes := &event.ToolPolicy{Approval: event.ApprovalWrites}
	reads := &event.ToolPolicy{Approval: event.ApprovalWrites, Reads: true}
	never := &event.ToolPolicy{Approval: event.ApprovalNever}
	exempt := &event.ToolPolicy{Approval: event.ApprovalNever, Exempt: true}
	for name, c := range map[string]struct {
		call event.PendingCall
		want bool
	}{
		"a tool that is not on offer":                {event.PendingCall{}, false},
		"an unset policy asks":                       {event.PendingCall{Policy: &event.ToolPolicy{}}, true},
		"an unknown policy asks, even about reading": {event.PendingCall{Policy: &event.ToolPolicy{Approval: "sometimes", Reads: true}}, true},
		"always":                       {event.PendingCall{Policy: always}, true},
		"always, of a tool that reads": {event.PendingCall{Policy: &event.ToolPolicy{Approval: event.ApprovalAlways, Reads: true}}, true},
		"writes":                       {event.PendingCall{Policy: writes}, true},
		"writes, of a tool that reads": {event.PendingCall{Policy: reads}, false},
		"writes, of a tool that reads, after taint": {event.PendingCall{Policy: reads, Tainted: true}, false},
		"never":              {event.PendingCall{Policy: never}, false},
		"never, after taint": {event.PendingCall{Policy: never, Tainted: true}, true},
		"never, after taint, of a tool that reads":          {event.PendingCall{Policy: &event.ToolPolicy{Approval: event.ApprovalNever, Reads: true}, Tainted: true}, false},
		"never, after taint, of an exempt tool":             {event.PendingCall{Policy: exempt, Tainted: true}, false},
		"a supervised member, although the policy does not": {event.PendingCall{Policy: never, Supervised: true}, true},
		"a supervised member, a tool that is not on offer":  {event.PendingCall{Supervised: true}, true},
		"a supervised member, a tool of the team":           {event.PendingCall{Policy: exempt, Supervised: true, TeamTool: true}, false},
		"a call that cannot run":                            {event.PendingCall{Policy: always, Supervised: true, Client: true, Invalid: true}, false},
		"a tool of the client":                              {event.PendingCall{Client: true}, true},
		"a tool of the client, in a team":                   {event.PendingCall{Client: true, TeamTool: true}, true},
		"a tool of the client that a server has, too":       {event.PendingCall{Client: true, Policy: never}, false},
		"the log says so, whatever the policy is now":       {event.PendingCall{Policy: never, Recorded: true}, true},
		"an agent and an opened tool":                       {event.PendingCall{Policy: always, Tainted: true, Delegated: true}, false},
		"an agent and an opened tool, as the log has it":    {event.PendingCall{Policy: always, Recorded: true, Delegated: true}, false},
	} {
		if got := c.call.NeedsPerson(); got != c.want {
			t.Errorf("%s: NeedsPerson() = %t, want %t", name, got, c.want)
		}
	}
}
