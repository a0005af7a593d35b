package participants

import (
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// reserved returns why a participant may not have its name or its id: the operator has reserved it for other principals.
// Participants are found by either, so that both count; an id may have the name and more.
func (c Config) reserved(p command.Participant) error {
	for name, principals := range c.Names {
		field, name := "", plain(name)
		switch called := plain(p.ID); {
		case plain(p.Name) == name:
			field = "name"
		case called == name, strings.HasPrefix(called, name+"-"):
			field = "id"
		}
		if field != "" && !slices.Contains(principals, p.Principal) {
			return fault.Newf(fault.Forbidden, "This %s is reserved. Choose another one, or ask the operator to reserve it for you.", field).At(field)
		}
	}
	return nil
}

// plain returns a name as people compare it: without case, and with one space between words.
func plain(name string) string { return strings.ToLower(strings.Join(strings.Fields(name), " ")) }
