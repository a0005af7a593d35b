// Package subject builds and parses every NATS subject, stream name and
// directory key of Waggle. It is the only place that does: code elsewhere that
// concatenates a subject is refused by the linter.
//
//	evt.<p>.<tenant>.<kind>.<id>              the log of one entity    stream EVT_<p>
//	live.<tenant>.<kind>.<id>.<type>          the same event, announced    core NATS
//	cmd.<service>.<p>.<tenant>.<key>.<verb>   ask for something            stream CMD
//	timer.set.<service>.<tenant>.<key>.<name> a schedule                   stream TIMER_<service>
//	timer.fire.<service>.<tenant>.<key>.<name> the schedule, due           stream TIMER_<service>
//	rpc.<service>.<verb>                      ask and wait                 NATS micro
//	direct.<gateway>.<connection>             say to one connection        core NATS
//	dead.<service>.<tenant>.<key>.<verb>      a command given up           stream DEAD
//	audit.<tenant>.<action>                   who did what                 stream AUDIT
//	index.<tenant>.<kind>.<id>                what lists show of a log     stream INDEX
//
// <type> is a canonical event type and may itself hold dots (message.delta), so
// that a monitor can subscribe to live.*.session.*.tool.> .
//
// A direct message is an event without a seq, in no log, for one connection: a refusal, a pong, a list. If it is lost, no
// state is: the client reads the log.
package subject

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Names of streams and buckets.
const (
	StreamCommands  = "CMD"
	StreamDead      = "DEAD"
	StreamAudit     = "AUDIT"
	StreamIndex     = "INDEX"
	BucketDirectory = "directory"
	BucketAcks      = "acks"
	BucketRegistry  = "registry"
	BucketFolds     = "folds"
)

// ErrInvalid is wrapped by every parse error of this package.
var ErrInvalid = errors.New("invalid subject")

// Log names the ordered log of one entity.
type Log struct {
	Tenant id.Tenant
	Kind   id.Kind
	Entity id.Entity
}

// Name returns tenant.kind.id, the form used in dedupe ids and event subjects.
func (l Log) Name() string {
	return l.Tenant.String() + "." + string(l.Kind) + "." + l.Entity.String()
}

// String returns Name.
func (l Log) String() string { return l.Name() }

// Live returns the subject on which an event of the given canonical type is announced.
func (l Log) Live(eventType string) string { return "live." + l.Name() + "." + eventType }

// LiveAll returns the filter that matches every announcement of the log.
func (l Log) LiveAll() string { return "live." + l.Name() + ".>" }

// LiveEverything is the filter of all announcements of all tenants.
const LiveEverything = "live.>"

// LiveTenant returns the filter that matches every announcement of a tenant.
func LiveTenant(t id.Tenant) string { return "live." + t.String() + ".>" }

// LiveTenantKind returns the filter that matches every announcement of a tenant's logs of a
// kind.
func LiveTenantKind(t id.Tenant, k id.Kind) string {
	return "live." + t.String() + "." + string(k) + ".>"
}

// ParseName parses the form that Log.Name returns.
func ParseName(s string) (Log, error) { return parseLog(strings.Split(s, "."), s) }

// ParseLive parses a subject under live. into the log and the event type.
func ParseLive(s string) (Log, string, error) {
	t := strings.SplitN(s, ".", 5)
	if len(t) != 5 || t[0] != "live" || !isType(t[4]) {
		return Log{}, "", invalid("live", s)
	}
	l, err := parseLog(t[1:4], s)
	return l, t[4], err
}

// isType reports whether s has the form of a canonical event type: words of lower
// case letters and underscores, joined by dots.
func isType(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return false
		}
	}
	return true
}

// Command addresses a command: Verb asked of Service for the entity Key.
type Command struct {
	Service id.Name
	Tenant  id.Tenant
	Key     id.Entity
	Verb    id.Name
}

// Dead returns the subject of the command's dead-letter record.
func (c Command) Dead() string { return "dead." + c.Service.String() + "." + c.tail() }

func (c Command) tail() string {
	return c.Tenant.String() + "." + c.Key.String() + "." + c.Verb.String()
}

// ParseDead parses a subject under dead. .
func ParseDead(s string) (Command, error) {
	t := strings.Split(s, ".")
	if len(t) != 5 || t[0] != "dead" {
		return Command{}, invalid("dead letter", s)
	}
	return commandOf(t[1], t[2:])
}

// commandOf parses the tokens that all subjects of a command have: the service, and those that tail joins.
func commandOf(service string, tail []string) (Command, error) {
	var f failures
	c := Command{
		Service: token(&f, id.ParseName, service), Tenant: token(&f, id.ParseTenant, tail[0]),
		Key: token(&f, id.ParseEntity, tail[1]), Verb: token(&f, id.ParseName, tail[2]),
	}
	return c, f.err()
}

// CommandFilterAll returns the filter of all commands of a service.
func CommandFilterAll(service id.Name) string { return "cmd." + service.String() + ".>" }

// Timer addresses a schedule: Name due for the entity Key of Service.
type Timer struct {
	Service id.Name
	Tenant  id.Tenant
	Key     id.Entity
	Name    id.Name
}

// Set returns the subject under which the schedule is stored. Publishing again
// replaces the schedule.
func (t Timer) Set() string { return "timer.set." + t.tail() }

// Fire returns the subject on which the timer arrives when it is due.
func (t Timer) Fire() string { return "timer.fire." + t.tail() }

func (t Timer) tail() string {
	return t.Service.String() + "." + t.Tenant.String() + "." + t.Key.String() + "." + t.Name.String()
}

// TimerFilter returns the filter of all due timers of a service.
func TimerFilter(service id.Name) string { return "timer.fire." + service.String() + ".>" }

// ParseTimer parses a subject under timer.fire. .
func ParseTimer(s string) (Timer, error) {
	t := strings.Split(s, ".")
	if len(t) != 6 || t[0] != "timer" || t[1] != "fire" {
		return Timer{}, invalid("timer", s)
	}
	var f failures
	out := Timer{
		Service: token(&f, id.ParseName, t[2]), Tenant: token(&f, id.ParseTenant, t[3]),
		Key: token(&f, id.ParseEntity, t[4]), Name: token(&f, id.ParseName, t[5]),
	}
	if err := f.err(); err != nil {
		return Timer{}, err
	}
	return out, nil
}

// Direct returns the subject of direct messages to one connection of one gateway, which are not in any log. A command
// carries it as its reply_to.
func Direct(gateway, connection id.Name) string {
	return "direct." + gateway.String() + "." + connection.String()
}

// DirectFilter returns the filter of all connections of a gateway.
func DirectFilter(gateway id.Name) string { return "direct." + gateway.String() + ".*" }

// ReplyTo returns the address of a connection as commands carry it: "<gateway>.<connection>".
func ReplyTo(gateway, connection id.Name) string { return gateway.String() + "." + connection.String() }

// ParseReplyTo parses the form that ReplyTo returns.
func ParseReplyTo(s string) (gateway, connection id.Name, err error) {
	return ParseDirect("direct." + s)
}

// ParseDirect parses a subject under direct. .
func ParseDirect(s string) (gateway, connection id.Name, err error) {
	t := strings.Split(s, ".")
	if len(t) != 3 || t[0] != "direct" {
		return gateway, connection, invalid("direct message", s)
	}
	var f failures
	gateway = token(&f, id.ParseName, t[1])
	connection = token(&f, id.ParseName, t[2])
	return gateway, connection, f.err()
}

// RPC returns the subject of a request-reply endpoint.
func RPC(service, verb id.Name) string { return "rpc." + service.String() + "." + verb.String() }

// DirectoryKey returns the KV key of one live instance of a service or other
// participant: <what>.<name>.<instance>.
func DirectoryKey(what, name, instance id.Name) string {
	return what.String() + "." + name.String() + "." + instance.String()
}

// RegistryKey returns the KV key of a known agent or provider: <tenant>.<kind>.<participant>.
func RegistryKey(t id.Tenant, kind id.Name, participant id.Entity) string {
	return t.String() + "." + kind.String() + "." + participant.String()
}

// RegistryFilter returns the KV filter of all entries of a kind, in all tenants.
func RegistryFilter(kind id.Name) string { return "*." + kind.String() + ".*" }

// ParseRegistryKey parses the form that RegistryKey returns.
func ParseRegistryKey(s string) (t id.Tenant, kind id.Name, participant id.Entity, err error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return t, kind, participant, invalid("registry", s)
	}
	var f failures
	t = token(&f, id.ParseTenant, parts[0])
	kind = token(&f, id.ParseName, parts[1])
	participant = token(&f, id.ParseEntity, parts[2])
	return t, kind, participant, f.err()
}

// AckKey returns the KV key of a client's position in a log.
func AckKey(l Log, client id.Entity) string { return l.Name() + "." + client.String() }

// FoldKey returns the KV key of the snapshot of a log: <tenant>.<kind>.<id>.
func FoldKey(l Log) string { return l.Name() }

// FoldPart returns the KV key of one part of a snapshot that has several: <tenant>.<kind>.<id>.<part>.
func FoldPart(l Log, part int) string { return l.Name() + "." + strconv.Itoa(part) }

// DirectoryFilter returns the KV filter of all instances of what.
func DirectoryFilter(what id.Name) string { return what.String() + ".>" }

// StreamSubjects returns the subject filter of each stream that is not an event shard.
func StreamSubjects(stream string) []string {
	switch stream {
	case StreamCommands:
		return []string{"cmd.>"}
	case StreamDead:
		return []string{"dead.>"}
	case StreamAudit:
		return []string{AuditAll}
	case StreamIndex:
		return []string{IndexAll}
	}
	return nil
}

func parseLog(t []string, whole string) (Log, error) {
	if len(t) != 3 {
		return Log{}, invalid("log", whole)
	}
	var f failures
	l := Log{
		Tenant: token(&f, id.ParseTenant, t[0]), Kind: token(&f, id.ParseKind, t[1]), Entity: token(&f, id.ParseEntity, t[2]),
	}
	if err := f.err(); err != nil {
		return Log{}, err
	}
	return l, nil
}

// failures are the errors of the tokens of a subject.
type failures []error

// err joins the failures, or returns nil without any.
func (f failures) err() error {
	if len(f) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, errors.Join(f...))
}

// token parses one token and keeps its error.
func token[T any](f *failures, parse func(string) (T, error), s string) T {
	v, err := parse(s)
	if err != nil {
		*f = append(*f, err)
	}
	return v
}

func invalid(what, s string) error {
	return fmt.Errorf("%w: not a %s subject: %q", ErrInvalid, what, clip(s))
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80]
	}
	return s
}

// IndexAll is the filter of all that the index holds.
const IndexAll = "index.>"

// AuditAll is the filter of all records of the audit log.
const AuditAll = "audit.>"
