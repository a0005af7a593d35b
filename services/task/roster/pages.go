package roster

import (
	"encoding/json"
	"slices"
	"strings"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// scanned bounds the participants that a part of a list looks at while others wait for the roster.
	scanned = 4096
	// Found bounds those that it returns.
	Found = 512
)

// Some returns at most n participants after a spot that pass the filter, and where the next part begins; more is false at the
// end of the list. Those of all tenants are among them.
func (r *Roster) Some(t id.Tenant, kind string, f cmd.ParticipantFilter, after Spot, n int) (out []cmd.Participant, next Spot, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if begin := (Spot{Name: f.Prefix}); after.compare(begin) < 0 {
		after = begin
	}
	own, shared := r.group(t, kind).with(f.Capabilities), r.group(id.Tenant{}, kind).with(nil)
	a, b := own.behind(after), shared.behind(after)
	for looked := 0; len(a)+len(b) > 0; looked++ {
		if looked == scanned || len(out) == min(n, Found) {
			return out, after, true
		}
		var rec *record
		if len(b) == 0 || len(a) > 0 && a[0].spot().compare(b[0].spot()) < 0 {
			rec, a = a[0], a[1:]
		} else {
			rec, b = b[0], b[1:]
		}
		if !strings.HasPrefix(rec.shown.Name, f.Prefix) {
			return out, after, false
		}
		after = rec.spot()
		if p := listed(*rec.shown, t); Matches(p, f) {
			out = append(out, p)
		}
	}
	return out, after, false
}

// listed is what lists say of a participant.
func listed(p cmd.Participant, t id.Tenant) cmd.Participant {
	if p.Tenant = t; !p.Online {
		p.Status = cmd.StatusInactive
	}
	return public(p)
}

// public is what other participants may know of a participant.
func public(p cmd.Participant) cmd.Participant {
	p.Principal, p.Gateway, p.Connection, p.Incarnation, p.Full, p.Knows, p.Holds = "", "", "", "", false, false, nil
	return p
}

// Matches reports whether a participant passes the filter.
func Matches(p cmd.Participant, f cmd.ParticipantFilter) bool {
	if f.Status != "" && !cmd.StatusFits(p.Status, f.Status) {
		return false
	}
	if !strings.HasPrefix(p.Name, f.Prefix) || f.Name != "" && !strings.Contains(strings.ToLower(p.Name), strings.ToLower(f.Name)) {
		return false
	}
	for _, c := range f.Capabilities {
		if !slices.Contains(p.Capabilities, c) {
			return false
		}
	}
	return f.Type == "" || strings.EqualFold(f.Type, typeOf(p))
}

// typeOf is the member type of what else a participant said of itself.
func typeOf(p cmd.Participant) string {
	var extra struct {
		Type       string `json:"type"`
		ClientType string `json:"client_type"`
	}
	if len(p.Extra) == 0 || json.Unmarshal(p.Extra, &extra) != nil {
		return ""
	}
	if extra.Type == "" {
		return extra.ClientType
	}
	return extra.Type
}
