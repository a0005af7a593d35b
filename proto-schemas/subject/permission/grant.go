package permission

import (
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// grant collects the permissions of a role. Its methods are named after the code's actions, so that the table of
// roles reads like the roles' work.
type grant struct {
	partitions        subject.Partitions
	pub, sub, streams []string
}

func (g *grant) publish(s ...string)   { g.pub = append(g.pub, s...) }
func (g *grant) subscribe(s ...string) { g.sub = append(g.sub, s...) }

// sends lets the role send commands of some verbs to a service.
func (g *grant) sends(service id.Name, verbs ...id.Name) {
	for _, v := range verbs {
		g.publish(subject.CommandsOf(service, v))
	}
}

// asks lets the role ask services.
func (g *grant) asks(services ...id.Name) {
	for _, s := range services {
		g.publish(subject.RPCOf(s))
	}
}

// serves lets the role answer requests to a service from the named roles and from operators that search for services.
// Answers are listed and not tied to a request (allow_responses), because a call of a tool has any number of them
// over any time.
func (g *grant) serves(service id.Name, to ...Role) {
	g.subscribe(subject.RPCOf(service))
	g.found(service)
	g.answers(append(to, Operator)...)
}

// found lets the role answer operators that search for a service.
func (g *grant) found(service id.Name) {
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		s := "$SRV." + verb
		g.subscribe(s, s+"."+service.String(), s+"."+service.String()+".*")
	}
}

// answers lets the role publish to the inboxes of others, whose names cannot be guessed.
func (g *grant) answers(roles ...Role) {
	for _, r := range roles {
		g.publish(Inbox(r) + ".>")
	}
}

// lists lets the role list participants of the swarm in the directory.
func (g *grant) lists(what ...id.Name) {
	for _, w := range what {
		g.publish(key(subject.BucketDirectory, subject.DirectoryFilter(w)))
	}
}

// tells lets the role send direct messages.
func (g *grant) tells() { g.publish(subject.DirectMessages) }

// hears lets the role receive direct messages. The subject does not name the role of the connection.
func (g *grant) hears() { g.subscribe(subject.DirectMessages) }

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// key returns the subject of the keys of a bucket that match the pattern.
func key(name, pattern string) string { return subject.BucketSubject(name, pattern) }
