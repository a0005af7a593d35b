package checkup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

const (
	// deepQueue is the depth of the alert WaggleQueueDeep: a service handles as many commands in seconds.
	deepQueue = 1000
	// behind is the lag of the alert WaggleReplicaLag.
	behind = 1000
	// recently is the age up to which the doctor reports a dead letter, so that an operator who runs it daily sees each one.
	recently = 24 * time.Hour
)

// Copies checks leader and replicas of every stream.
func Copies(ctx context.Context, conn *bus.Conn) []Finding {
	const what = "replicas"
	l, _ := permission.Of(permission.Operator, conn.Partitions())
	var bad, leaders []string
	most := 0
	for _, name := range l.Streams {
		s, err := conn.JS().Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // the finding about streams reports it
		}
		if err != nil {
			bad = append(bad, fmt.Sprintf("%s does not answer: %v", name, err))
			continue
		}
		i := s.CachedInfo()
		most = max(most, i.Config.Replicas)
		bad = append(bad, ill(i)...)
		if i.Cluster != nil && i.Cluster.Leader != "" && !slices.Contains(leaders, i.Cluster.Leader) {
			leaders = append(leaders, i.Cluster.Leader)
		}
	}
	slices.Sort(leaders)
	switch {
	case len(bad) > 0:
		return One(Fail, what, strings.Join(bad, "\n"), "bring the servers named back; see WaggleStreamWithoutLeader, WaggleReplicaMissing and WaggleReplicaLag in docs/OPERATIONS.md")
	case most <= 1:
		return One(OK, what, "one copy of each stream", "")
	}
	return One(OK, what, fmt.Sprintf("%d copies of each stream, all current; led by %s", most, strings.Join(leaders, ", ")), "")
}

// ill returns the faults of a stream's copies.
func ill(i *jetstream.StreamInfo) (bad []string) {
	c := i.Cluster
	if c == nil {
		return nil
	}
	if c.Leader == "" {
		bad = append(bad, i.Config.Name+" has no leader")
	}
	for _, r := range c.Replicas {
		switch {
		case r.Offline:
			bad = append(bad, fmt.Sprintf("%s: its copy on %s is offline", i.Config.Name, r.Name))
		case r.Lag > behind:
			bad = append(bad, fmt.Sprintf("%s: its copy on %s is %d operations behind", i.Config.Name, r.Name, r.Lag))
		case !r.Current:
			bad = append(bad, fmt.Sprintf("%s: its copy on %s is not current", i.Config.Name, r.Name))
		}
	}
	return bad
}

// Queues judges how many commands wait for each service.
func Queues(waiting map[string]uint64) []Finding {
	const what = "queues"
	var lines, deep []string
	for service, n := range waiting {
		line := fmt.Sprintf("%s %d", service, n)
		lines = append(lines, line)
		if n > deepQueue {
			deep = append(deep, line)
		}
	}
	slices.Sort(lines)
	slices.Sort(deep)
	switch {
	case len(deep) > 0:
		return One(Warn, what, "many commands wait: "+strings.Join(deep, ", "), "see WaggleQueueDeep in docs/OPERATIONS.md")
	case len(lines) == 0:
		return One(OK, what, "no service has taken commands yet", "")
	}
	return One(OK, what, "waiting: "+strings.Join(lines, ", "), "")
}

// Letters checks for dead letters.
func Letters(ctx context.Context, conn *bus.Conn, now time.Time) []Finding {
	const what = "dead letters"
	s, err := conn.JS().Stream(ctx, subject.StreamDead)
	if err != nil {
		return nil // another finding reports it
	}
	state := s.CachedInfo().State
	if state.Msgs == 0 {
		return One(OK, what, "none", "")
	}
	is := fmt.Sprintf("%d, the newest of %s", state.Msgs, state.LastTime.UTC().Format(time.RFC3339))
	if now.Sub(state.LastTime) < recently {
		return One(Warn, what, is, "read why: nats stream view DEAD; see WaggleDeadLetters in docs/OPERATIONS.md")
	}
	return One(OK, what, is, "")
}
