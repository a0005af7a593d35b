package subject

import (
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Streams of timers and buckets of quotas belong to one service each. Both need roll-ups, so a message with the header
// "Nats-Rollup: all" removes all other messages of its stream; and the server lets a schedule fire on every subject of
// its stream, without a look at the permissions of its user.

// timerServices have timers.
var timerServices = []id.Name{
	id.MustName("session"), id.MustName("pipeline"), id.MustName("task"), id.MustName("team"), id.MustName("member"),
}

// TimerServices returns the services that have timers.
func TimerServices() []id.Name { return slices.Clone(timerServices) }

// TimerStream returns the name of the stream that holds the timers of a service.
func TimerStream(service id.Name) string { return "TIMER_" + service.String() }

// TimerSubjects returns the filters of all messages of a service's timers, set and due.
func TimerSubjects(service id.Name) []string {
	return []string{"timer.set." + service.String() + ".>", TimerFilter(service)}
}

// TimerStreams returns the names of all streams of timers.
func TimerStreams() []string {
	out := make([]string, len(timerServices))
	for i, s := range timerServices {
		out[i] = TimerStream(s)
	}
	return out
}

// quotaUsage holds what workers use a day.
const quotaUsage = "quota_usage"

// quotaOf names the bucket of a resource that a service other than the workers counts.
var quotaOf = map[string]string{
	"connections": "quota_connections", "sessions": "quota_sessions", "tasks": "quota_tasks", "children": "quota_tasks", "teams": "quota_teams",
}

// QuotaBucket returns the name of the bucket that holds the holdings of a resource.
func QuotaBucket(resource id.Name) string {
	if b, ok := quotaOf[resource.String()]; ok {
		return b
	}
	return quotaUsage
}

// QuotaBuckets returns the names of all buckets of holdings.
func QuotaBuckets() []string {
	out := []string{quotaUsage}
	for _, b := range quotaOf {
		out = append(out, b)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Names of earlier versions: all services shared one stream of timers and one bucket of quotas. Bootstrap moves their
// messages.
const (
	RetiredTimers = "TIMER"
	RetiredQuota  = "quota"
)

// RetiredTimerSubjects are the subjects that the retired stream of timers had, and those that it has while its messages
// are moved.
const (
	RetiredTimerSubjects = "timer.>"
	RetiringTimers       = "retired.timer.>"
)

// RetiredStreams returns the names of the streams that Bootstrap replaces.
func RetiredStreams() []string { return []string{RetiredTimers, BucketStream(RetiredQuota)} }
