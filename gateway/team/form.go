package team

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// fields is the payload of a frame. A map keeps the names of its members exact, which
// decoding into a struct would not.
type fields map[string]json.RawMessage

// form reads a frame and keeps the first thing that is wrong with it.
type form struct{ fault *fault.Fault }

// Rules in words.
const (
	aText     = "a string that is not empty"
	someTexts = "a list of strings"
	aToken    = "the approval_token of the question"
)

// The members that may name a member of the team, the most exact first.
var (
	routes = []string{"target_member_route_key", "member_route_key"}
	names  = []string{"target_member_name", "target_agent_name", "agent_name", "agent_id"}
)

// answerMembers are the members of an answer to a question.
var answerMembers = slices.Concat([]string{"invocation_id", "message_id", "reason", "approval_token", "target_member_path"}, routes, names)

// payload returns the payload, which may be absent.
func (f *form) payload(top fields) fields {
	raw := top.get("payload")
	if raw == nil {
		return nil
	}
	p, ok := strict.Members(raw)
	if !ok {
		f.wrong("payload", "an object")
	}
	return p
}

// get returns a member, nil where it is absent or null.
func (o fields) get(name string) json.RawMessage {
	if raw := o[name]; string(raw) != "null" {
		return raw
	}
	return nil
}

// text returns a member that may be absent.
func (f *form) text(p fields, name string) string {
	raw := p.get(name)
	s, ok := strict.Text(raw)
	if raw != nil && !ok {
		f.wrong("payload."+name, "a string")
	}
	return s
}

// needText returns a member that says something.
func (f *form) needText(p fields, name string) string {
	s := f.text(p, name)
	if strings.TrimSpace(s) == "" {
		f.wrong("payload."+name, aText)
	}
	return s
}

// texts returns a list of texts under the first of its names that is there.
func (f *form) texts(p fields, names ...string) []string {
	var out []string
	for _, name := range names {
		raw := p.get(name)
		if raw == nil {
			continue
		}
		list, ok := textList(raw)
		if !ok {
			f.wrong("payload."+name, someTexts)
		}
		if out == nil {
			out = list
		}
	}
	return out
}

func textList(raw json.RawMessage) ([]string, bool) {
	var items []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return nil, false
	}
	out := make([]string, 0, len(items))
	for _, item := range items {
		s, ok := strict.Text(item)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// target returns the member that is meant, as the client names it: a path, a name or
// the id of an agent. A connection that shows no team has one recipient alone.
func (f *form) target(p fields, in dialect.Inbound) string {
	found := f.path(p)
	for _, name := range names {
		found = narrate.First(found, f.text(p, name))
	}
	if in.Kind != id.KindTeam {
		return ""
	}
	return found
}

// path returns the path to the member that is meant.
func (f *form) path(p fields) string {
	found := strings.Join(f.texts(p, "target_member_path"), "/")
	for _, name := range routes {
		found = narrate.First(found, f.text(p, name))
	}
	return found
}

// token reads an approval_token, which may be absent. It has to be that of the call.
func (f *form) token(p fields, call string) wire.ApprovalToken {
	var t wire.ApprovalToken
	raw := p.get("approval_token")
	if raw == nil {
		return t
	}
	m, ok := strict.Members(raw)
	if !ok {
		f.wrong("payload.approval_token", aToken)
		return t
	}
	for name, to := range map[string]*string{"invocationId": &t.InvocationID, "targetMemberName": &t.TargetMemberName, "digest": &t.Digest} {
		if *to, ok = strict.Text(fields(m).get(name)); fields(m).get(name) != nil && !ok {
			f.wrong("payload.approval_token."+name, "a string")
		}
	}
	if t.InvocationID != call {
		f.wrong("payload.approval_token.invocationId", "the invocation_id")
	}
	return t
}

// messageID is the client's id of the message, or a fresh one where it gives none. An
// illegal token is replaced by its hash, so that a repeat is still a repeat.
func (f *form) messageID(p fields, in dialect.Inbound) string {
	if given := f.text(p, "message_id"); given != "" {
		return id.EntityFromExternal(given).String()
	}
	return in.NewID()
}

// wrong notes what is wrong with a member. The first thing counts.
func (f *form) wrong(field, rule string) {
	if f.fault == nil {
		f.fault = invalid(field, fmt.Sprintf("%s must be %s.", field, rule))
	}
}
