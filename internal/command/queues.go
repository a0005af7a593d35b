package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Depth counts the commands in the queue of a service, over all its partitions.
type Depth struct {
	Pending     uint64 // not delivered yet
	Out         uint64 // delivered and not yet acknowledged
	Redelivered uint64 // unacknowledged commands that were delivered more than once
}

// Depths measures the queues of all services that have commands or consumers, by the name of the service. A resting
// partition has lost its consumer: Depths counts its commands in the stream. The figures are not taken at the same
// moment.
func Depths(ctx context.Context, c *bus.Conn) (map[string]Depth, error) {
	stream, err := c.JS().Stream(ctx, subject.StreamCommands)
	if err != nil {
		return nil, fmt.Errorf("look at the queue of commands: %w", err)
	}
	by := map[string]Depth{}
	var seen uint64
	var prefixes []string
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		service, ok := serviceOf(info.Config.FilterSubject)
		if !ok || info.Config.Durable == "" {
			continue
		}
		d, out := by[service], uint64(max(info.NumAckPending, 0))
		seen += info.NumPending + out
		d.Pending += info.NumPending
		d.Out += out
		d.Redelivered += uint64(max(info.NumRedelivered, 0))
		by[service] = d
		prefixes = append(prefixes, strings.TrimSuffix(info.Config.FilterSubject, ">"))
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("list the consumers of commands: %w", err)
	}
	if seen >= stream.CachedInfo().State.Msgs {
		return by, nil
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject.StreamSubjects(subject.StreamCommands)[0]))
	if err != nil {
		return nil, fmt.Errorf("count the commands by subject: %w", err)
	}
	for s, n := range info.State.Subjects {
		counted := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
		if service, ok := serviceOf(s); ok && !counted {
			d := by[service]
			d.Pending += n
			by[service] = d
		}
	}
	return by, nil
}

// serviceOf returns the service of a subject, or of a filter, of commands.
func serviceOf(s string) (string, bool) {
	tokens := strings.Split(s, ".")
	if len(tokens) < 3 || tokens[0] != "cmd" {
		return "", false
	}
	return tokens[1], true
}
