package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

const (
	// deepQueue is the depth of WaggleQueueDeep: what a service handles in seconds.
	deepQueue = 1000
	// behind is the lag of WaggleReplicaLag.
	behind = 1000
	// recently is how long a dead letter is news: whoever looks once a day sees it.
	recently = 24 * time.Hour
	// roundUp is how long servers are given to answer a question to all of them.
	roundUp = time.Second
	// slowestSync is what the configurations of deploy/nats have; NATS' own default is
	// two minutes of acknowledged messages that a power failure may cost.
	slowestSync = time.Second
)

// copies checks leader and replicas of every stream.
func copies(ctx context.Context, conn *bus.Conn) []Finding {
	const what = "replicas"
	l, _ := permission.Of(permission.Operator)
	var bad, leaders []string
	most := 0
	for _, name := range l.Streams {
		s, err := conn.JS().Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // the finding about streams has said it
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
		return one(Fail, what, strings.Join(bad, "\n"), "bring the servers named back; see WaggleStreamWithoutLeader, WaggleReplicaMissing and WaggleReplicaLag in docs/OPERATIONS.md")
	case most <= 1:
		return one(OK, what, "one copy of each stream", "")
	}
	return one(OK, what, fmt.Sprintf("%d copies of each stream, all current; led by %s", most, strings.Join(leaders, ", ")), "")
}

// ill says what is wrong with the copies of a stream.
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

// queues checks how many commands wait, service by service.
func queues(ctx context.Context, conn *bus.Conn) []Finding {
	const what = "queues"
	s, err := conn.JS().Stream(ctx, subject.StreamCommands)
	if err != nil {
		return nil // said already
	}
	waiting := map[string]uint64{}
	list := s.ListConsumers(ctx)
	for c := range list.Info() {
		if tokens := strings.Split(c.Config.FilterSubject, "."); len(tokens) > 1 {
			waiting[tokens[1]] += c.NumPending
		}
	}
	if err := list.Err(); err != nil {
		return one(Warn, what, "the consumers cannot be listed: "+err.Error(), "see the finding about permissions")
	}
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
		return one(Warn, what, "many commands wait: "+strings.Join(deep, ", "), "see WaggleQueueDeep in docs/OPERATIONS.md")
	case len(lines) == 0:
		return one(OK, what, "no service has taken commands yet", "")
	}
	return one(OK, what, "waiting: "+strings.Join(lines, ", "), "")
}

// letters checks whether commands were given up.
func letters(ctx context.Context, conn *bus.Conn, now time.Time) []Finding {
	const what = "dead letters"
	s, err := conn.JS().Stream(ctx, subject.StreamDead)
	if err != nil {
		return nil // said already
	}
	state := s.CachedInfo().State
	if state.Msgs == 0 {
		return one(OK, what, "none", "")
	}
	is := fmt.Sprintf("%d, the newest of %s", state.Msgs, state.LastTime.UTC().Format(time.RFC3339))
	if now.Sub(state.LastTime) < recently {
		return one(Warn, what, is, "read why: nats stream view DEAD; see WaggleDeadLetters in docs/OPERATIONS.md")
	}
	return one(OK, what, is, "")
}

// refusals collects what the server does not let the doctor do.
type refusals struct {
	mu   sync.Mutex
	said []string
}

func (r *refusals) watch(conn *bus.Conn) {
	conn.NATS().SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if !errors.Is(err, nats.ErrPermissionViolation) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.said = append(r.said, strings.TrimPrefix(err.Error(), "nats: "))
	})
}

// permissions reports what was refused while the others looked.
func (r *refusals) permissions() []Finding {
	const what = "permissions"
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.said) == 0 {
		return one(OK, what, "this user may look at everything that was looked at", "")
	}
	slices.Sort(r.said)
	return one(Warn, what, strings.Join(slices.Compact(r.said), "\n"),
		"give the doctor the user operator (nats.nkey: operator.nk), and the servers the current deploy/nats/accounts.conf")
}

// serverReport is what a NATS server says of itself.
type serverReport struct {
	Server struct {
		Name    string `json:"name"`
		Version string `json:"ver"`
	} `json:"server"`
	Data struct {
		Config struct {
			Sync   time.Duration `json:"sync_interval"`
			Always bool          `json:"sync_always"`
		} `json:"config"`
		Meta *struct {
			Leader string `json:"leader"`
			Size   int    `json:"cluster_size"`
		} `json:"meta_cluster"`
		Disabled bool `json:"disabled"`
	} `json:"data"`
}

// servers asks every NATS server, which only the system user may.
func servers(ctx context.Context, p Patient) []Finding {
	const what = "NATS servers"
	if p.SystemNKey == "" {
		return nil
	}
	c := p.Config.NATS
	conn, err := bus.Connect(ctx, bus.Config{
		URL: c.URL, Name: "waggle/doctor", NKeySeedFile: p.SystemNKey, InboxPrefix: permission.Inbox(permission.System),
		TLSCA: c.TLSCA, TLSCert: c.TLSCert, TLSKey: c.TLSKey, Logger: zerolog.Nop(),
	})
	if err != nil {
		return one(Fail, what, "the system user does not get in: "+err.Error(), "give --system-nkey the seed that \"waggle keys\" made (system.nk)")
	}
	defer conn.Close()
	reports, err := rollCall(ctx, conn)
	if err != nil {
		return one(Fail, what, err.Error(), "see the servers' logs")
	}
	return judge(reports)
}

// rollCall asks all servers at once and takes what comes within a second.
func rollCall(ctx context.Context, conn *bus.Conn) ([]serverReport, error) {
	inbox := conn.NATS().NewInbox()
	sub, err := conn.NATS().SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := conn.NATS().PublishRequest("$SYS.REQ.SERVER.PING.JSZ", inbox, []byte(`{"config":true}`)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, roundUp)
	defer cancel()
	var out []serverReport
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			if len(out) == 0 {
				return nil, fmt.Errorf("no server answers the system user: %w", err)
			}
			return out, nil
		}
		var r serverReport
		if err := json.Unmarshal(m.Data, &r); err != nil {
			return nil, fmt.Errorf("a server's answer: %w", err)
		}
		out = append(out, r)
	}
}

// judge compares what the servers say.
func judge(reports []serverReport) []Finding {
	const what = "NATS servers"
	var lines, slow, versions []string
	leader, size := "", 0
	for _, r := range reports {
		sync := r.Data.Config.Sync.String()
		if r.Data.Config.Always {
			sync = "always"
		}
		lines = append(lines, fmt.Sprintf("%s %s, sync_interval %s", r.Server.Name, r.Server.Version, sync))
		if !r.Data.Config.Always && r.Data.Config.Sync > slowestSync {
			slow = append(slow, r.Server.Name)
		}
		if !slices.Contains(versions, r.Server.Version) {
			versions = append(versions, r.Server.Version)
		}
		if m := r.Data.Meta; m != nil {
			leader, size = m.Leader, max(size, m.Size)
		}
	}
	slices.Sort(lines)
	is := strings.Join(lines, "\n")
	switch {
	case size > 0 && leader == "":
		return one(Fail, what, is+"\nJetStream has no meta leader: no stream can be made or moved", "bring the missing servers back: more than half have to be there")
	case len(reports) < size:
		return one(Fail, what, fmt.Sprintf("%s\n%d of %d servers answer", is, len(reports), size), "bring the missing servers back")
	case len(slow) > 0:
		return one(Warn, what, is, "set sync_interval to 100ms or always on "+strings.Join(slow, ", ")+": a power failure costs what was not written yet")
	case len(versions) > 1:
		return one(Warn, what, is, "bring all servers to one version")
	}
	if leader != "" {
		is += "\nthe meta leader is " + leader
	}
	return one(OK, what, is, "")
}
