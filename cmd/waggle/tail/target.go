// Package tail shows the events of Waggle to a person: the whole log of one entity, or all announcements, one line an event.
package tail

import (
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Target is a log, or announcements that match a subject.
type Target struct {
	Log     subject.Log // if Subject is empty
	Subject string
}

// livePrefix is the prefix of every announcement's subject.
var livePrefix = strings.TrimSuffix(subject.LiveEverything, ">")

// Parse reads a user's input: empty text (everything of the tenant, or of all tenants if tenant is empty), KIND/ID, or a
// NATS subject under live. such as 'live.*.session.*.tool.>'.
func Parse(text, tenant string) (Target, error) {
	switch {
	case text == "" && tenant == "":
		return Target{Subject: subject.LiveEverything}, nil
	case strings.HasPrefix(text, livePrefix):
		if strings.ContainsAny(text, " \t\r\n") {
			return Target{}, fmt.Errorf("%q is not a NATS subject", text)
		}
		return Target{Subject: text}, nil
	}
	t := id.DefaultTenant
	if tenant != "" {
		var err error
		if t, err = id.ParseTenant(tenant); err != nil {
			return Target{}, fmt.Errorf("--tenant: %w", err)
		}
	}
	if text == "" {
		return Target{Subject: subject.LiveTenant(t)}, nil
	}
	kind, entity, ok := strings.Cut(text, "/")
	if !ok {
		return Target{}, fmt.Errorf("%q is neither KIND/ID, such as session/ID, nor a subject such as '%s'", text, subject.LiveEverything)
	}
	return parseLog(t, kind, entity)
}

func parseLog(t id.Tenant, kind, entity string) (Target, error) {
	k, err := id.ParseKind(kind)
	if err != nil {
		return Target{}, err
	}
	e, err := id.ParseEntity(entity)
	if err != nil {
		return Target{}, err
	}
	return Target{Log: subject.Log{Tenant: t, Kind: k, Entity: e}}, nil
}
