package subject

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Partitions is the number of shards of an installation's event log, and of the partitions of each service's commands. An
// installation keeps the number that its streams were created with: another one would move every log.
type Partitions uint16

// DefaultPartitions is the number of an installation that chose none, MostPartitions the largest one.
const (
	DefaultPartitions Partitions = 16
	MostPartitions    Partitions = 256
)

// PartitionChoices returns the numbers that an installation may choose.
func PartitionChoices() []Partitions { return []Partitions{DefaultPartitions, 64, MostPartitions} }

// All returns the partitions 0 to n-1.
func (n Partitions) All() []Partition {
	out := make([]Partition, n)
	for i := range out {
		out[i] = Partition(i)
	}
	return out
}

// Of returns the log's shard: fnv32a(tenant.kind.id) mod n.
func (n Partitions) Of(l Log) Partition { return n.hash(l.Name()) }

// OfCommand returns the partition in which all commands of the same key are ordered: fnv32a(service.tenant.key) mod n.
func (n Partitions) OfCommand(c Command) Partition {
	return n.hash(c.Service.String() + "." + c.Tenant.String() + "." + c.Key.String())
}

func (n Partitions) hash(name string) Partition {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return Partition(h.Sum32() % uint32(n)) //nolint:gosec // below MostPartitions
}

// Stream returns the name of the stream that stores the log.
func (n Partitions) Stream(l Log) string { return n.Of(l).EventStream() }

// Event returns the subject under which the log's events are stored.
func (n Partitions) Event(l Log) string { return "evt." + n.Of(l).String() + "." + l.Name() }

// ParseEvent parses a subject under evt. and checks its partition token.
func (n Partitions) ParseEvent(s string) (Log, error) {
	t := strings.Split(s, ".")
	if len(t) != 5 || t[0] != "evt" {
		return Log{}, invalid("event", s)
	}
	l, err := parseLog(t[2:], s)
	if err != nil {
		return Log{}, err
	}
	if n.Of(l).String() != t[1] {
		return Log{}, fmt.Errorf("%w: event subject has the wrong partition: %q", ErrInvalid, clip(s))
	}
	return l, nil
}

// Command returns the subject on which the command is published.
func (n Partitions) Command(c Command) string {
	return "cmd." + c.Service.String() + "." + n.OfCommand(c).String() + "." + c.tail()
}

// ParseCommand parses a subject under cmd. and checks its partition token.
func (n Partitions) ParseCommand(s string) (Command, error) {
	t := strings.Split(s, ".")
	if len(t) != 6 || t[0] != "cmd" {
		return Command{}, invalid("command", s)
	}
	c, err := commandOf(t[1], t[3:])
	if err != nil {
		return Command{}, err
	}
	if n.OfCommand(c).String() != t[2] {
		return Command{}, fmt.Errorf("%w: command subject has the wrong partition: %q", ErrInvalid, clip(s))
	}
	return c, nil
}

// Partition is the number of a shard, from 0 to one less than the installation's Partitions.
type Partition uint8

// String returns the token of the partition, of two digits or more: "00" to "15", "63" or "255".
func (p Partition) String() string {
	if p < 100 {
		return string([]byte{'0' + byte(p)/10, '0' + byte(p)%10})
	}
	return strconv.Itoa(int(p))
}

// EventStream returns the name of the stream that holds the partition, such as EVT_00.
func (p Partition) EventStream() string { return "EVT_" + p.String() }

// EventFilter returns the subject filter of the partition's stream.
func (p Partition) EventFilter() string { return "evt." + p.String() + ".>" }

// LogFilter returns the filter of all logs of a tenant's kind in the partition.
func (p Partition) LogFilter(t id.Tenant, k id.Kind) string {
	return "evt." + p.String() + "." + t.String() + "." + string(k) + ".*"
}

// CommandFilter returns the filter of one ordered partition of a service.
func CommandFilter(service id.Name, p Partition) string {
	return "cmd." + service.String() + "." + p.String() + ".>"
}
