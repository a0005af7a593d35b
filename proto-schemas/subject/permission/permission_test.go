package permission_test

import (
	"slices"
	"strings"
	"testing"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

func of(t *testing.T, r permission.Role) permission.List {
	t.Helper()
	l, ok := permission.Of(r, subject.DefaultPartitions)
	if !ok {
		t.Fatalf("unknown role %s", r)
	}
	return l
}

var (
	key     = id.EntityFromExternal("s1")
	session = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: key}
	team    = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: key}
	member  = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindMember, Entity: key}
)

func command(service, verb id.Name) string {
	return subject.DefaultPartitions.Command(subject.Command{Service: service, Tenant: id.DefaultTenant, Key: key, Verb: verb})
}

// The most important permissions, role by role.
func TestWhoMayDoWhat(t *testing.T) {
	tools := id.MustName("tools")
	for _, c := range []struct {
		role    permission.Role
		subject string
		may     bool
	}{
		{permission.Gateway, command(cmd.Pipeline, cmd.SendMessage), true},
		{permission.Gateway, command(cmd.Pipeline, cmd.SettleJob), false},
		{permission.Gateway, command(cmd.Worker, cmd.DoJob), false},
		{permission.Gateway, subject.DefaultPartitions.Event(session), false},
		{permission.Gateway, command(cmd.Session, cmd.Delete), true},
		{permission.Gateway, command(cmd.Session, cmd.EraseTask), false},
		{permission.Gateway, command(cmd.Task, cmd.DeleteTask), false},
		{permission.Session, command(cmd.Task, cmd.DeleteTask), true},
		{permission.Task, command(cmd.Session, cmd.EraseTask), true},
		{permission.Gateway, session.Live("message.delta"), false},
		{permission.Gateway, subject.RPC(tools, id.MustName("call")), false},
		{permission.Team, subject.RPC(cmd.Team, id.MustName("a-replica")), true},
		{permission.Team, permission.Inbox(permission.Team) + ".x.y", true},
		{permission.Team, subject.RPC(cmd.Task, id.MustName("x")), false},
		{permission.Session, subject.DefaultPartitions.Event(session), true},
		{permission.Session, subject.DefaultPartitions.Event(team), false},
		{permission.Session, command(cmd.Worker, cmd.DoJob), false},
		{permission.Pipeline, command(cmd.Worker, cmd.DoJob), true},
		{permission.Pipeline, command(cmd.Task, cmd.MessageTask), true}, // answers to agents, with the signed one
		{permission.Team, command(cmd.Task, cmd.MessageTask), true},
		{permission.Team, command(cmd.Task, cmd.CreateTask), true},
		{permission.Worker, command(cmd.Task, cmd.MessageTask), false},
		{permission.Task, command(cmd.Pipeline, cmd.AskPeople), true},
		{permission.Task, command(cmd.Pipeline, cmd.CloseQuestion), true},
		{permission.Task, command(cmd.Member, cmd.AskPeople), true},
		{permission.Task, command(cmd.Member, cmd.FinishJob), true},
		{permission.Gateway, command(cmd.Pipeline, cmd.AskPeople), false},
		{permission.Worker, command(cmd.Pipeline, cmd.CloseQuestion), false},
		{permission.Pipeline, command(cmd.Pipeline, cmd.SendMessage), false},
		{permission.Worker, subject.DefaultPartitions.Event(session), true},
		{permission.Worker, subject.RPC(tools, id.MustName("call")), true},
		{permission.Worker, command(cmd.Worker, cmd.DoJob), true}, // passes on a job whose model another worker has
		{permission.Task, subject.DefaultPartitions.Event(session), false},
		{permission.Team, subject.DefaultPartitions.Event(team), true},
		{permission.Tools, subject.DefaultPartitions.Event(session), false},
		{permission.Tools, "$JS.API.DIRECT.GET." + subject.DefaultPartitions.Stream(session), false},
		{permission.Tools, "$JS.API.STREAM.MSG.GET." + subject.DefaultPartitions.Stream(session), false},
		{permission.Operator, subject.DefaultPartitions.Event(session), false},
		{permission.Operator, "$JS.API.STREAM.SNAPSHOT." + subject.DefaultPartitions.Stream(session), true},
		{permission.Operator, "$JS.API.STREAM.DELETE." + subject.DefaultPartitions.Stream(session), false},
		{permission.Bootstrap, "$JS.API.STREAM.CREATE." + subject.DefaultPartitions.Stream(session), true},
		{permission.Bootstrap, "$JS.API.STREAM.MSG.GET." + subject.DefaultPartitions.Stream(session), false},
		{permission.Bootstrap, "$JS.API.STREAM.UPDATE.AUDIT", false},
		{permission.Retention, "$JS.API.STREAM.UPDATE.AUDIT", true},
		{permission.Retention, "$JS.API.STREAM.UPDATE.CMD", false},
		{permission.Monitor, "live.x", false},
		{permission.Session, session.Index(), true},
		{permission.Session, team.Index(), false},
		{permission.Gateway, session.Index(), false},
		{permission.Gateway, "$JS.API.STREAM.PURGE.INDEX", false},
		{permission.Task, session.Index(), false},
		{permission.Pipeline, session.Index(), false},
		{permission.Worker, session.Index(), false},
		{permission.Worker, "$JS.API.DIRECT.GET.INDEX", false},
		{permission.Tools, "$JS.API.DIRECT.GET.INDEX", false},
		{permission.Pipeline, snapshot(session), true},
		{permission.Pipeline, snapshot(member), false},
		{permission.Worker, snapshot(session), true},
		{permission.Worker, snapshot(member), true},
		{permission.Worker, snapshot(team), false},
		{permission.Team, snapshot(member), true},
		{permission.Team, snapshot(session), false},
		{permission.Tools, snapshot(session), false},
		{permission.Gateway, snapshot(session), false},
	} {
		if got := of(t, c.role).MayPublish(c.subject); got != c.may {
			t.Errorf("%s may publish %s: %v, want %v", c.role, c.subject, got, c.may)
		}
	}
}

// Every process tells gateways what it has counted, and no other role asks.
func TestGatewaysAskAllProcessesForRates(t *testing.T) {
	request := subject.RPC(cmd.Process, cmd.ListRates)
	processes := []permission.Role{
		permission.Gateway, permission.Session, permission.Pipeline, permission.Worker, permission.Task, permission.Tools, permission.Team,
	}
	for _, l := range permission.All(subject.DefaultPartitions) {
		if asks := l.MayPublish(request); asks != (l.Role == permission.Gateway) {
			t.Errorf("%s may ask for rates: %v", l.Role, asks)
		}
		hears, answers := l.MaySubscribe(request), l.MayPublish(permission.Inbox(permission.Gateway)+".x")
		if is := slices.Contains(processes, l.Role); hears != is || answers != is {
			t.Errorf("%s hears the request: %v, answers: %v, has processes: %v", l.Role, hears, answers, is)
		}
	}
}

// Each command that any role sends can be sent again after it was given up: by the gateway, or by the role that handles it and
// then reads its dead letters. Nothing else sends it.
func TestEveryCommandCanBeSentAgain(t *testing.T) {
	found := 0
	for _, role := range permission.All(subject.DefaultPartitions) {
		for _, s := range role.Publish {
			tokens := strings.Split(s, ".")
			if tokens[0] != "cmd" {
				continue
			}
			found++
			service, verb := id.MustName(tokens[1]), id.MustName(tokens[5])
			if of(t, permission.Gateway).MayPublish(command(service, verb)) {
				continue
			}
			for _, owner := range permission.All(subject.DefaultPartitions) {
				dead := owner.MayPublish(subject.DeadOf(service))
				asked := owner.MaySubscribe(subject.RPC(cmd.Letters, service))
				if dead != asked {
					t.Errorf("%s gives commands of %s up: %v, and is asked to send them again: %v", owner.Role, service, dead, asked)
				}
				if dead && (!owner.MayPublish(command(service, verb)) || !owner.MayPublish("$JS.API.DIRECT.GET.DEAD")) {
					t.Errorf("%s cannot send %s again", owner.Role, s)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d kinds of commands", found)
	}
	for _, role := range permission.All(subject.DefaultPartitions) {
		if may := role.MayPublish("$JS.API.STREAM.MSG.DELETE.DEAD"); may != (role.Role == permission.Session) {
			t.Errorf("%s may discard dead letters: %v", role.Role, may)
		}
	}
}

func snapshot(l subject.Log) string {
	return subject.BucketSubject(subject.BucketFolds, subject.FoldKey(l))
}

// A snapshot says as much as the events that it replaces: only roles that write the logs of a kind may store one, and no other
// role may read one past the log.
func TestWritersOfALogStoreItsSnapshots(t *testing.T) {
	found := 0
	for _, kind := range []id.Kind{id.KindSession, id.KindMember, id.KindTeam, id.KindTask, id.KindInbox, id.KindCall} {
		l := subject.Log{Tenant: id.DefaultTenant, Kind: kind, Entity: key}
		part := subject.BucketSubject(subject.BucketFolds, subject.FoldPart(l, 3))
		for _, role := range permission.All(subject.DefaultPartitions) {
			for _, s := range []string{snapshot(l), part} {
				writes, reads := role.MayPublish(s), role.MayPublish("$JS.API.DIRECT.GET.KV_folds."+s)
				if writes {
					found++
				}
				if writes && (!role.MayPublish(subject.DefaultPartitions.Event(l)) || !reads) {
					t.Errorf("%s may store %s, and not write the log or not read it", role.Role, s)
				}
				if reads && !writes && role.Role != permission.Operator {
					t.Errorf("%s may read %s", role.Role, s)
				}
			}
		}
	}
	if found != 2*(3+2+1) {
		t.Errorf("%d permissions for snapshots", found)
	}
	if l := of(t, permission.Tools); slices.ContainsFunc(l.Publish, func(s string) bool { return strings.Contains(s, "KV_folds") || strings.Contains(s, "$KV.folds") }) {
		t.Error("the least role reaches snapshots")
	}
}

// No role may do what would let it do everything.
func TestNoRoleMayDoEverything(t *testing.T) {
	all := permission.All(subject.DefaultPartitions)
	for _, l := range all {
		if !slices.IsSorted(l.Publish) || !slices.IsSorted(l.Subscribe) || !slices.IsSorted(l.Streams) || l.Does == "" {
			t.Errorf("%s: not sorted, or without a word about it", l.Role)
		}
		if !l.MaySubscribe(permission.Inbox(l.Role) + ".x.y") {
			t.Errorf("%s does not hear its answers", l.Role)
		}
		for _, s := range []string{
			">", "_INBOX.>", "_INBOX.x", "$SYS.>", "$SYS.REQ.SERVER.PING", "$JS.API.>", "$JS.API.STREAM.DELETE.CMD",
			"$JS.API.STREAM.PURGE.>", "$JS.API.STREAM.PURGE.*", "$JS.API.STREAM.PURGE.CMD", "$JS.API.STREAM.PURGE.AUDIT", "$JS.API.STREAM.MSG.DELETE.EVT_00", "$JS.API.CONSUMER.CREATE.CMD",
			"$JS.API.CONSUMER.CREATE.EVT_00.x.>", "evt.>", "evt.00.default.>", "cmd.>", "timer.fire.session.default.x.expire", "x",
		} {
			if l.MayPublish(s) || l.MaySubscribe(s) {
				t.Errorf("%s may use %s", l.Role, s)
			}
		}
		for _, other := range all {
			if other.Role != l.Role && l.MaySubscribe(permission.Inbox(other.Role)+".x") {
				t.Errorf("%s hears the answers to %s", l.Role, other.Role)
			}
		}
	}
}

// One role removes messages, only in the streams that hold data of sessions and of their tasks.
func TestOneRoleErases(t *testing.T) {
	erasable := []string{
		subject.StreamPayloads, subject.StreamDead, subject.StreamIndex, "KV_" + subject.BucketAcks,
		subject.TimerStream(cmd.Session), subject.TimerStream(cmd.Pipeline), subject.TimerStream(cmd.Task),
	}
	for _, p := range subject.DefaultPartitions.All() {
		erasable = append(erasable, p.EventStream())
	}
	slices.Sort(erasable)
	for _, l := range permission.All(subject.DefaultPartitions) {
		var may []string
		for _, s := range l.Publish {
			if stream, ok := strings.CutPrefix(s, "$JS.API.STREAM.PURGE."); ok {
				may = append(may, stream)
			}
		}
		if l.Role != permission.Session && len(may) > 0 || l.Role == permission.Session && !slices.Equal(may, erasable) {
			t.Errorf("%s may purge %v", l.Role, may)
		}
	}
}

// Commands are taken by one role each, and only by consumers that the server holds to
// their filter.
func TestEveryCommandHasOneTaker(t *testing.T) {
	for _, s := range []id.Name{cmd.Session, cmd.Pipeline, cmd.Worker, cmd.Task, cmd.Team, cmd.Member} {
		var takers []permission.Role
		for _, l := range permission.All(subject.DefaultPartitions) {
			for _, durable := range []string{s.String(), s.String() + "-07"} {
				filter := subject.CommandFilterAll(s)
				if strings.HasSuffix(durable, "-07") {
					filter = subject.CommandFilter(s, 7)
				}
				if l.MayPublish("$JS.API.CONSUMER.CREATE.CMD." + durable + "." + filter) {
					takers = append(takers, l.Role)
				}
			}
		}
		if len(takers) != 1 {
			t.Errorf("commands of %s are taken by %v", s, takers)
		}
	}
}

// No role may delete, pause, reset or unpin a consumer, or list those of others.
func TestNoRoleManagesConsumers(t *testing.T) {
	for _, l := range permission.All(subject.DefaultPartitions) {
		for _, s := range l.Publish {
			for _, verb := range []string{"DELETE", "PAUSE", "RESET", "UNPIN", "LEADER"} {
				if strings.HasPrefix(s, "$JS.API.CONSUMER."+verb) {
					t.Errorf("%s may use %s", l.Role, s)
				}
			}
			if l.Role != permission.Operator && strings.HasPrefix(s, "$JS.API.CONSUMER.NAMES.") {
				t.Errorf("%s may use %s", l.Role, s)
			}
		}
	}
}

func TestAccountsHaveEveryRole(t *testing.T) {
	text := permission.Accounts(subject.DefaultPartitions)
	for _, l := range permission.All(subject.DefaultPartitions) {
		if !strings.Contains(text, "nkey: $"+permission.Variable(l.Role)+"\n") {
			t.Errorf("%s is not among the users", l.Role)
		}
		for _, s := range append(slices.Clone(l.Publish), l.Subscribe...) {
			if !strings.Contains(text, `"`+s+`"`) {
				t.Errorf("%s: %s is not in the file", l.Role, s)
			}
		}
	}
	if strings.Contains(text, "allow: [\n            ]") {
		t.Error("an empty list allows everything")
	}
}

func TestPatternsCoverAsInNATS(t *testing.T) {
	for _, c := range []struct {
		pattern, subject string
		covers           bool
	}{
		{"a.b", "a.b", true},
		{"a.*", "a.b", true},
		{"a.*", "a.*", true},
		{"a.b", "a.*", false},
		{"a.*", "a.>", false},
		{"a.*", "a.b.c", false},
		{"a.>", "a.b.c", true},
		{"a.>", "a.*.c", true},
		{"a.>", "a", false},
		{"a.*.c", "a.b", false},
		{"a.b", "a.b.c", false},
	} {
		l := permission.List{Publish: []string{c.pattern}}
		if got := l.MayPublish(c.subject); got != c.covers {
			t.Errorf("%s covers %s: %v", c.pattern, c.subject, got)
		}
	}
}
