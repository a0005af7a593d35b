package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

const (
	// roundUp is the time in which servers may answer a question to all of them.
	roundUp = time.Second
	// slowestSync is the sync interval in the configurations of deploy/nats; with NATS' own default a power failure may lose
	// two minutes of acknowledged messages.
	slowestSync = time.Second
)

// serverReport is a NATS server's description of itself.
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
			Leader   string `json:"leader"`
			Size     int    `json:"cluster_size"`
			Replicas []struct {
				Name string `json:"name"`
			} `json:"replicas"`
		} `json:"meta_cluster"`
		Disabled bool `json:"disabled"`
	} `json:"data"`
	Error *struct {
		Description string `json:"description"`
	} `json:"error"`
}

// errNotSystem reports that the asking user is not the system user.
var errNotSystem = errors.New("this user cannot query the servers: it does not belong to the NATS system account")

// servers asks every NATS server, as the system user.
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
	switch {
	case errors.Is(err, errNotSystem):
		return one(Fail, what, err.Error(), "give --system-nkey the seed of the system user (system.nk), and the servers deploy/nats/accounts.conf, which makes that user")
	case err != nil:
		return one(Fail, what, err.Error(), "see the servers' logs")
	}
	return judge(reports)
}

// rollCall asks all servers at once and collects the answers of one second.
func rollCall(ctx context.Context, conn *bus.Conn) ([]serverReport, error) {
	var refused refusals
	refused.watch(conn)
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
		switch {
		case err != nil && len(out) > 0:
			return out, nil
		case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrPermissionViolation), err != nil && refused.any():
			return nil, errNotSystem
		case err != nil:
			return nil, fmt.Errorf("no server answers the system user: %w", err)
		}
		var r serverReport
		if err := json.Unmarshal(m.Data, &r); err != nil {
			return nil, fmt.Errorf("a server's answer: %w", err)
		}
		out = append(out, r)
	}
}

// roll combines the reports of all servers.
type roll struct {
	lines, names, versions        []string
	slow, off, broken, unanswered []string
	leader                        string
	size                          int
}

func (r *roll) add(s serverReport) {
	name := s.Server.Name
	r.names = append(r.names, name)
	if !slices.Contains(r.versions, s.Server.Version) {
		r.versions = append(r.versions, s.Server.Version)
	}
	line := name + " " + s.Server.Version
	switch {
	case s.Error != nil:
		line += ", does not answer for JetStream: " + s.Error.Description
		r.broken = append(r.broken, name)
	case s.Data.Disabled:
		line += ", JetStream is switched off"
		r.off = append(r.off, name)
	case s.Data.Config.Always:
		line += ", sync_interval always"
	default:
		line += ", sync_interval " + s.Data.Config.Sync.String()
		if s.Data.Config.Sync > slowestSync {
			r.slow = append(r.slow, name)
		}
	}
	r.lines = append(r.lines, line)
	if m := s.Data.Meta; m != nil {
		r.size = max(r.size, m.Size)
		if m.Leader != "" {
			r.leader = m.Leader
		}
		for _, peer := range m.Replicas {
			r.unanswered = append(r.unanswered, peer.Name)
		}
	}
}

// away names the servers of the cluster that have not answered.
func (r *roll) away() []string {
	var out []string
	for _, name := range r.unanswered {
		if name != "" && !slices.Contains(r.names, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// judge compares the servers' reports.
func judge(reports []serverReport) []Finding {
	const what = "NATS servers"
	var r roll
	for _, s := range reports {
		r.add(s)
	}
	for _, list := range [][]string{r.lines, r.slow, r.off, r.broken} {
		slices.Sort(list)
	}
	var bad, do []string
	fail := func(is, should string) { bad, do = append(bad, is), append(do, should) }
	if len(r.off) > 0 {
		fail("JetStream is disabled on "+strings.Join(r.off, ", ")+": it stores no replicas",
			"a full or failing disk does that, and the server stays so until it is restarted: make room, then restart "+strings.Join(r.off, ", ")+
				"; if it is not configured there, give it the jetstream block of deploy/nats/server.conf")
	}
	if len(r.broken) > 0 {
		fail("JetStream does not respond on every server", "see the log of "+strings.Join(r.broken, ", "))
	}
	if r.size > 0 && r.leader == "" {
		fail("JetStream has no meta leader: streams cannot be created or moved", "start the missing servers: more than half must be running")
	}
	if away := r.away(); len(away) > 0 || len(reports) < r.size {
		fail(strings.TrimSuffix(fmt.Sprintf("%d of %d servers answer; not there: %s", len(reports), r.size, strings.Join(away, ", ")), "; not there: "),
			"start the missing servers")
	}
	is := strings.Join(r.lines, "\n")
	switch {
	case len(bad) > 0:
		return one(Fail, what, is+"\n"+strings.Join(bad, "\n"), strings.Join(do, "\n"))
	case len(r.slow) > 0:
		return one(Warn, what, is, "set sync_interval to 1s or always on "+strings.Join(r.slow, ", ")+": a power failure costs what was not written yet")
	case len(r.versions) > 1:
		return one(Warn, what, is, "bring all servers to one version")
	}
	if r.leader != "" {
		is += "\nthe meta leader is " + r.leader
	}
	return one(OK, what, is, "")
}
