package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// attacker is a role whose key is in the wrong hands. It sends what its permissions let it send, with every header that
// could remove something, and requests to every stream.
type attacker struct {
	t       *testing.T
	list    permission.List
	nc      *nats.Conn
	sent    int
	refused int
}

// stored returns a subject for each of the role's patterns that a stream stores.
func stored(l permission.List) (out []string) {
	for _, p := range l.Publish {
		s := strings.Replace(p, "evt.*", "evt.00", 1)
		for _, head := range []string{"evt.", "cmd.", "timer.set.", "dead.", "audit.", "$KV.", "$O."} {
			if strings.HasPrefix(s, head) {
				out = append(out, concrete(s))
			}
		}
	}
	return out
}

// send sends a message and waits until the server has handled or refused it.
func (a *attacker) send(subj string, body any, header map[string]string) {
	a.t.Helper()
	m := nats.NewMsg(subj)
	for k, v := range header {
		m.Header.Set(k, v)
	}
	if body != nil {
		data, err := json.Marshal(body)
		require.NoError(a.t, err)
		m.Data = data
	}
	a.sent++
	if !a.list.MayPublish(subj) {
		a.refused++
		require.NoError(a.t, a.nc.PublishMsg(m))
		return
	}
	answer, err := a.nc.RequestMsg(m, process.MaxWait)
	require.NoError(a.t, err, "%s sends %s", a.list.Role, subj)
	if strings.Contains(string(answer.Data), `"error"`) {
		a.refused++
	}
}

// seed stores what the role stores in its work.
func (a *attacker) seed() {
	for _, s := range stored(a.list) {
		a.send(s, "kept", schedule(s, fired(s)))
	}
}

func fired(set string) string { return strings.Replace(set, "timer.set.", "timer.fire.", 1) }

// schedule returns the headers of a schedule, for timers.
func schedule(set, target string) map[string]string {
	if !strings.HasPrefix(set, "timer.set.") {
		return nil
	}
	return map[string]string{"Nats-Schedule": "@at " + time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "Nats-Schedule-Target": target}
}

// overwrite sends messages whose headers remove other messages.
func (a *attacker) overwrite(others []string) {
	headers := []map[string]string{
		{"Nats-Rollup": "all"},
		{"Nats-Rollup": "sub"},
		{"Nats-Rollup": "all", "KV-Operation": "PURGE"},
		{"Nats-Expected-Last-Sequence": "0", "Nats-Rollup": "all"},
		{"Nats-Expected-Last-Subject-Sequence": "0"},
		{"Nats-TTL": "1s", "Nats-Rollup": "sub"},
		{"Nats-Msg-Id": "x"},
	}
	for _, s := range some(stored(a.list), 2) {
		for _, h := range headers {
			a.send(s, nil, h)
		}
		for _, other := range others {
			a.send(s, nil, map[string]string{"Nats-Schedule-Next": "purge", "Nats-Scheduler": other})
			a.send(s, nil, schedule(s, other))
			a.send(s, nil, map[string]string{
				"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": fired(other), "Nats-Schedule-Rollup": "all", "Nats-Rollup": "all",
			})
		}
	}
	for _, other := range others {
		if !a.list.MayPublish(other) {
			a.send(other, nil, map[string]string{"Nats-Rollup": "sub", "KV-Operation": "PURGE"})
		}
	}
}

// granted are the requests that remove messages and that a role has on purpose: session deletes sessions, and bootstrap
// and retention, which no process keeps, change the limits of streams.
func granted(l permission.List, request string) bool {
	return l.MayPublish(request) && (l.Role == permission.Session && strings.HasPrefix(request, "$JS.API.STREAM.PURGE.") ||
		(l.Role == permission.Bootstrap || l.Role == permission.Retention) && strings.HasPrefix(request, "$JS.API.STREAM.UPDATE."))
}

// command sends requests to the streams and to the consumers of others.
func (a *attacker) command(streams, consumers []string) (kept int) {
	requests := map[string]any{}
	for _, s := range streams {
		for _, verb := range []string{"PURGE", "DELETE", "UPDATE", "MSG.DELETE", "CREATE", "RESTORE", "LEADER.STEPDOWN", "PEER.REMOVE"} {
			requests["$JS.API.STREAM."+verb+"."+s] = map[string]any{"name": s, "max_msgs": 1, "seq": 1}
		}
		for _, c := range consumers {
			for _, verb := range []string{"DELETE", "PAUSE", "RESET", "UNPIN", "LEADER.STEPDOWN"} {
				requests["$JS.API.CONSUMER."+verb+"."+s+"."+c] = map[string]any{"pause_until": time.Now().Add(time.Hour), "group": "g", "seq": 1}
			}
		}
	}
	for request, body := range requests {
		if granted(a.list, request) {
			kept++
			continue
		}
		a.send(request, body, nil)
	}
	return kept
}

// divert creates consumers that deliver what the role may follow, its own messages with all headers that their streams have
// taken included, to the interface of the streams, and to subjects of others. The server does not check where a consumer
// delivers, but delivers only while a client subscribes there, which a stream is not. divert returns how many the server has
// taken, once a last one has delivered an entry of the directory to the role itself.
func (a *attacker) divert(targets []string, renew func()) (taken int) {
	directory := subject.BucketStream(subject.BucketDirectory)
	own := permission.Inbox(a.list.Role) + ".diverted"
	sub, err := a.nc.SubscribeSync(own)
	require.NoError(a.t, err)
	for request, filter := range a.followed() {
		stream := strings.Split(request, ".")[4]
		to := targets
		if stream == directory {
			to = append(slices.Clone(targets), own)
		}
		for n, subj := range to {
			name := fmt.Sprintf("%s-%d", a.list.Role, n)
			before := a.refused
			a.send(strings.Replace(request, ".*", "."+name, 1), map[string]any{
				"stream_name": stream,
				"config": map[string]any{
					"name": name, "deliver_subject": subj, "filter_subject": filter, "ack_policy": "none", "deliver_policy": "all", "max_deliver": 1,
				},
			}, nil)
			if a.refused == before {
				taken++
			}
		}
		if stream == directory {
			renew() // a lease, for leases end by themselves
			_, err := sub.NextMsg(process.MaxWait)
			require.NoError(a.t, err, a.list.Role)
		}
	}
	return taken
}

// followed returns the requests with which the role may create consumers of any name, and their filters, one for each stream
// but for event shards, which are alike.
func (a *attacker) followed() map[string]string {
	out := map[string]string{}
	for _, p := range a.list.Publish {
		rest, ok := strings.CutPrefix(p, "$JS.API.CONSUMER.CREATE.")
		stream, filter, named := strings.Cut(rest, ".*.")
		if ok && named && (!strings.HasPrefix(stream, "EVT_") || stream == "EVT_00") {
			out[p] = filter
		}
	}
	return out
}

// diverted returns subjects of others, one for each stream or kind: a message there would be one more event, or replace a timer or
// an entry. With them are requests that remove messages.
func diverted(l permission.List, all []string) []string {
	out := []string{"$JS.API.STREAM.PURGE.EVT_00", "$JS.API.STREAM.DELETE.AUDIT", "$JS.API.CONSUMER.DELETE.CMD.session-00"}
	seen := map[string]bool{}
	for _, s := range all {
		parts := strings.Split(s, ".")
		n := map[string]int{"timer": 3, "$KV": 2, "evt": 4}[parts[0]]
		if n == 0 || len(parts) < n || l.MayPublish(s) || seen[strings.Join(parts[:n], ".")] {
			continue
		}
		seen[strings.Join(parts[:n], ".")] = true
		out = append(out, s)
	}
	return out
}

// contents returns the number of messages of each subject of all streams, and of the consumers of commands.
func contents(t *testing.T, nc *nats.Conn) (messages map[string]uint64, consumers int) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	messages = map[string]uint64{}
	for _, name := range streamNames(t) {
		s, err := js.Stream(t.Context(), name)
		require.NoError(t, err, name)
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(">"))
		require.NoError(t, err)
		maps.Copy(messages, info.State.Subjects)
		if name == subject.StreamCommands {
			consumers = info.State.Consumers
		}
	}
	return messages, consumers
}

func streamNames(t *testing.T) []string {
	t.Helper()
	l, ok := permission.Of(permission.Operator, subject.DefaultPartitions)
	require.True(t, ok)
	return l.Streams
}

// leased reports whether a subject is an entry of the directory, which ends by itself.
func leased(subj string) bool {
	return strings.HasPrefix(subj, subject.BucketSubject(subject.BucketDirectory, ""))
}

// lease stores an entry of the directory.
func (a *attacker) lease() {
	for _, s := range stored(a.list) {
		if leased(s) {
			a.send(s, "kept", nil)
			return
		}
	}
	require.Fail(a.t, "the role has no entries in the directory", a.list.Role)
}

// missing counts the messages that a role has removed of others.
func missing(t *testing.T, l permission.List, before, after map[string]uint64) (lost int) {
	t.Helper()
	for subj, n := range before {
		own := l.MayPublish(subj) || l.MayPublish(strings.Replace(subj, "timer.fire.", "timer.set.", 1))
		if !own && !leased(subj) && after[subj] < n {
			t.Errorf("%s removed %d of %d messages of %s", l.Role, n-after[subj], n, subj)
			lost += int(n - after[subj])
		}
	}
	return lost
}

// some are all at night, and by day one for each of the first words that the names begin with, so many of them.
func some(names []string, words int) (out []string) {
	seen := map[string]bool{}
	for _, name := range names {
		parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '_' })
		kind := strings.Join(parts[:min(words, len(parts))], ".")
		if many(0, 1) == 1 || !seen[kind] {
			out = append(out, name)
		}
		seen[kind] = true
	}
	return out
}

// attackEachOther lets every role try to remove what other roles have stored. Nothing of theirs may be lost.
func attackEachOther(t *testing.T, g *guarded) {
	watch, _ := g.dial(permission.Operator)
	var all []string
	attackers := map[permission.Role]*attacker{}
	for _, l := range permission.All(subject.DefaultPartitions) {
		nc, refused := g.dial(l.Role)
		go func() {
			for range refused { // the test closes no channel: the goroutine ends with the process
			}
		}()
		a := &attacker{t: t, list: l, nc: nc}
		attackers[l.Role] = a
		a.seed()
		all = append(all, stored(l)...)
	}
	maker, err := jetstream.New(attackers[permission.Session].nc)
	require.NoError(t, err)
	_, err = maker.CreateConsumer(t.Context(), subject.StreamCommands, jetstream.ConsumerConfig{
		Durable: "session-00", FilterSubject: "cmd.session.00.>", AckPolicy: jetstream.AckExplicitPolicy,
	})
	require.NoError(t, err)
	sent, refused, lost, kept, total, diversions := 0, 0, 0, 0, 0, 0
	for _, l := range permission.All(subject.DefaultPartitions) {
		a := attackers[l.Role]
		a.sent, a.refused = 0, 0
		before, consumers := contents(t, watch)
		a.overwrite(some(all, 2))
		kept += a.command(some(streamNames(t), 1), []string{"session-00"})
		require.NoError(t, a.nc.Flush())
		after, left := contents(t, watch)
		lost += missing(t, l, before, after)
		targets := diverted(l, all)
		diversions += a.divert(targets, func() { attackers[permission.Gateway].lease() })
		end, _ := contents(t, watch)
		lost += missing(t, l, after, end)
		for _, subj := range targets {
			if leased(subj) {
				continue
			}
			require.Equal(t, after[subj], end[subj], "%s stored on %s", l.Role, subj)
		}
		require.Equal(t, consumers, left, "%s removed a consumer", l.Role)
		sent, refused, total = sent+a.sent, refused+a.refused, max(total, len(before))
	}
	t.Logf("attacks: %d sent, %d refused; %d requests that roles have on purpose; %d subjects with messages, %d diversions, %d messages of others lost",
		sent, refused, kept, total, diversions, lost)
	require.Positive(t, diversions, "the server does not check where a consumer delivers: docs/SECURITY.md says so")
	require.Greater(t, sent, 1000)
	require.Zero(t, lost)
}
