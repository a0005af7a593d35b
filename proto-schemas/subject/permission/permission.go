// Package permission lists the subjects that each role of a fleet may publish and subscribe to, and renders the list
// as configuration of the NATS server. It allows only the subjects that the code of a role uses: the end-to-end tests
// run every role under its own list and fail at the first refusal.
//
// Roles are the boundary, tenants are not: a role that handles the sessions of one tenant handles those of all, and
// keeps them apart itself.
package permission

import (
	"slices"
	"strings"
)

// Role names the user of one kind of process.
type Role string

// The roles. The first ones are the roles of "waggle serve".
const (
	Gateway   Role = "gateway"
	Session   Role = "session"
	Pipeline  Role = "pipeline"
	Worker    Role = "worker"
	Task      Role = "task"
	Tools     Role = "tools"
	Team      Role = "team"
	Bootstrap Role = "bootstrap" // creates streams and buckets, and restores them; no process keeps it
	Retention Role = "retention" // changes the limits of the audit log; its key stays offline
	Operator  Role = "operator"  // doctor, tail and backup: reads everything, changes nothing
	Monitor   Role = "monitor"   // listens to announcements
)

// List holds the permissions of a role. The server refuses everything else.
type List struct {
	Role      Role
	Does      string   // purpose of the role, in one line
	Publish   []string // subjects and patterns, sorted
	Subscribe []string
	Streams   []string // that the role uses and may read, sorted; those of buckets too
}

// Inbox returns the prefix of all subjects for answers to the role. No other role may subscribe to them.
func Inbox(role Role) string { return "_INBOX_" + string(role) }

// MayPublish reports whether the list lets the role publish to the subject.
func (l List) MayPublish(subject string) bool { return matchesAny(l.Publish, subject) }

// MaySubscribe reports whether the list lets the role subscribe to the subject, which
// may be a pattern.
func (l List) MaySubscribe(subject string) bool { return matchesAny(l.Subscribe, subject) }

func matchesAny(patterns []string, subject string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, subject) })
}

// covers reports whether the pattern matches every subject that the given one matches.
func covers(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		switch {
		case token == ">":
			return len(s) > i
		case i >= len(s) || s[i] == ">":
			return false
		case token != "*" && token != s[i]:
			return false
		}
	}
	return len(p) == len(s)
}
