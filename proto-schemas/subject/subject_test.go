package subject_test

import (
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/internal/hostile"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxSubject is the longest subject that a NATS server accepts by default (4 KB control line), less a margin for the
// rest of the line.
const maxSubject = 2048

func TestNoStringChangesTheNumberOfTokens(t *testing.T) {
	service, verb := id.MustName("session"), id.MustName("message")
	kinds := []id.Kind{id.KindSession, id.KindTask, id.KindMember, id.KindTeam, id.KindInbox, id.KindCall}
	n := 0
	hostile.Strings(3, 20_000, func(s string) {
		n++
		tenant, err := id.ParseTenant(s)
		if err != nil {
			tenant = id.DefaultTenant
		}
		l := subject.Log{Tenant: tenant, Kind: kinds[n%len(kinds)], Entity: id.EntityFromExternal(s)}
		c := subject.Command{Service: service, Tenant: tenant, Key: l.Entity, Verb: verb}
		tm := subject.Timer{Service: service, Tenant: tenant, Key: l.Entity, Name: verb}
		tokens(t, l.Name(), 3)
		tokens(t, subject.DefaultPartitions.Event(l), 5)
		tokens(t, l.Live("message.delta"), 6)
		tokens(t, subject.DefaultPartitions.Command(c), 6)
		tokens(t, c.Dead(), 5)
		tokens(t, tm.Set(), 6)
		tokens(t, tm.Fire(), 6)
		roundTrip(t, l, c, tm)
	})
	t.Logf("%d strings", n)
}

func tokens(t *testing.T, s string, n int) {
	t.Helper()
	got := strings.Split(s, ".")
	if len(got) != n || slices.Contains(got, "") || len(s) > maxSubject {
		t.Fatalf("%q has %d tokens, want %d", s, len(got), n)
	}
	if strings.ContainsAny(s, "*> \t\r\n\x00$") {
		t.Fatalf("%q holds a character with a meaning of its own", s)
	}
}

func roundTrip(t *testing.T, l subject.Log, c subject.Command, tm subject.Timer) {
	t.Helper()
	if got, err := subject.ParseName(l.Name()); err != nil || got != l {
		t.Fatalf("name %q: %v, %v", l, got, err)
	}
	payloads(t, l)
	if got, err := subject.DefaultPartitions.ParseEvent(subject.DefaultPartitions.Event(l)); err != nil || got != l {
		t.Fatalf("event %q: %v, %v", subject.DefaultPartitions.Event(l), got, err)
	}
	if got, typ, err := subject.ParseLive(l.Live("tool.called")); err != nil || got != l || typ != "tool.called" {
		t.Fatalf("live %q: %v, %v", l, got, err)
	}
	if got, err := subject.DefaultPartitions.ParseCommand(subject.DefaultPartitions.Command(c)); err != nil || got != c {
		t.Fatalf("command %q: %v, %v", subject.DefaultPartitions.Command(c), got, err)
	}
	if got, err := subject.ParseDead(c.Dead()); err != nil || got != c {
		t.Fatalf("dead letter %q: %v, %v", c.Dead(), got, err)
	}
	if got, err := subject.ParseTimer(tm.Fire()); err != nil || got != tm {
		t.Fatalf("timer %q: %v, %v", tm.Fire(), got, err)
	}
}

func payloads(t *testing.T, l subject.Log) {
	t.Helper()
	if got, err := subject.LogOf(l.Tenant, l.Local()); err != nil || got != l {
		t.Fatalf("name within the tenant %q: %v, %v", l.Local(), got, err)
	}
	digest := strings.Repeat("0a", subject.DigestHex/2)
	if name, err := subject.PayloadName(l, digest); err != nil {
		t.Fatalf("payload of %q: %v", l, err)
	} else if got, d, err := subject.ParsePayloadName(name); err != nil || got != l || d != digest {
		t.Fatalf("payload %q: %v, %v, %v", name, got, d, err)
	}
}

// whatParses checks that a subject that parses equals the built one.
func whatParses(t *testing.T, s string) {
	t.Helper()
	rebuilt := map[string]func() (string, error){
		"name": func() (string, error) { l, err := subject.ParseName(s); return l.Name(), err },
		"event": func() (string, error) {
			l, err := subject.DefaultPartitions.ParseEvent(s)
			return subject.DefaultPartitions.Event(l), err
		},
		"live": func() (string, error) { l, typ, err := subject.ParseLive(s); return l.Live(typ), err },
		"command": func() (string, error) {
			c, err := subject.DefaultPartitions.ParseCommand(s)
			return subject.DefaultPartitions.Command(c), err
		},
		"dead":  func() (string, error) { c, err := subject.ParseDead(s); return c.Dead(), err },
		"timer": func() (string, error) { tm, err := subject.ParseTimer(s); return tm.Fire(), err },
		"payload": func() (string, error) {
			l, digest, err := subject.ParsePayloadName(s)
			if err != nil {
				return "", err
			}
			return subject.PayloadName(l, digest)
		},
	}
	for what, rebuild := range rebuilt {
		got, err := rebuild()
		if err == nil && got != s {
			t.Fatalf("%q parses as a %s, but would be built as %q", s, what, got)
		}
		if err != nil && !errors.Is(err, subject.ErrInvalid) {
			t.Fatalf("%s %q: the error does not wrap ErrInvalid: %v", what, s, err)
		}
	}
}

func TestWhatParsesIsCanonical(t *testing.T) {
	hostile.Strings(4, 500, func(s string) {
		whatParses(t, s)
		for _, f := range subject.Catalogue {
			parts := strings.Split(f.Example, ".")
			for i := range parts {
				changed := slices.Clone(parts)
				changed[i] = s
				whatParses(t, strings.Join(changed, "."))
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, form := range subject.Catalogue {
		f.Add(form.Example)
		f.Add(form.Pattern)
	}
	for _, s := range hostile.Samples {
		f.Add(s)
	}
	f.Add("default.task.t1." + strings.Repeat("0a", subject.DigestHex/2))
	f.Fuzz(whatParses)
}

func TestPartitionsNeverMove(t *testing.T) {
	// These are in use: a change here would lose every stored log.
	for name, want := range map[string]string{
		"default.session.s1":    "10",
		"default.task.t1":       "10",
		"acme.member.worker-7":  "03",
		"acme.team.research_01": "13",
	} {
		l, err := subject.ParseName(name)
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(name))
		if got := subject.DefaultPartitions.Of(l); got.String() != want || uint32(got) != h.Sum32()%16 {
			t.Errorf("partition of %s is %s, want %s", name, got, want)
		}
		if subject.DefaultPartitions.Stream(l) != "EVT_"+want || subject.DefaultPartitions.Event(l) != "evt."+want+"."+name {
			t.Errorf("%s is stored in %s under %s", name, subject.DefaultPartitions.Stream(l), subject.DefaultPartitions.Event(l))
		}
	}
}

func TestPartitionsAreEven(t *testing.T) {
	const each = 1000
	for _, n := range subject.PartitionChoices() {
		count := make([]int, n)
		for i := range each * int(n) {
			l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("session " + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strconv.Itoa(i))}
			count[n.Of(l)]++
		}
		for p, got := range count {
			if got < each*7/10 || got > each*13/10 {
				t.Errorf("partition %d of %d has %d logs, %d on average", p, n, got, each)
			}
		}
	}
}

// TestPartitionsHaveDifferentNames: the token of a subject and the names of streams tell the partitions of every installation apart.
func TestPartitionsHaveDifferentNames(t *testing.T) {
	for _, n := range subject.PartitionChoices() {
		seen := map[string]bool{}
		for i, p := range n.All() {
			if int(p) != i || seen[p.String()] || len(p.String()) < 2 {
				t.Fatalf("partition %d of %d is %q", i, n, p)
			}
			seen[p.String()] = true
			if got := p.EventStream(); got != "EVT_"+p.String() {
				t.Fatalf("partition %s is stored in %s", p, got)
			}
		}
		if len(seen) != int(n) {
			t.Fatalf("%d of %d partitions", len(seen), n)
		}
	}
}

// TestEveryNumberOfPartitionsReadsItsOwnSubjects: what an installation builds it parses, and a subject with the token of another
// partition is refused.
func TestEveryNumberOfPartitionsReadsItsOwnSubjects(t *testing.T) {
	c := subject.Command{Service: id.MustName("session"), Tenant: id.DefaultTenant, Key: id.EntityFromExternal("s1"), Verb: id.MustName("open")}
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}
	for _, n := range subject.PartitionChoices() {
		if got, err := n.ParseEvent(n.Event(l)); err != nil || got != l || !strings.HasPrefix(n.Event(l), "evt."+n.Of(l).String()+".") {
			t.Errorf("%d: event %q: %v, %v", n, n.Event(l), got, err)
		}
		if got, err := n.ParseCommand(n.Command(c)); err != nil || got != c {
			t.Errorf("%d: command %q: %v, %v", n, n.Command(c), got, err)
		}
		other := "evt." + (n.Of(l) + 1).String() + "." + l.Name()
		if _, err := n.ParseEvent(other); !errors.Is(err, subject.ErrInvalid) {
			t.Errorf("%d: %q was let through: %v", n, other, err)
		}
	}
}

func TestFilters(t *testing.T) {
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}
	c := subject.Command{Service: id.MustName("session"), Tenant: l.Tenant, Key: l.Entity, Verb: id.MustName("open")}
	tm := subject.Timer{Service: c.Service, Tenant: l.Tenant, Key: l.Entity, Name: id.MustName("expire")}
	for filter, s := range map[string]string{
		subject.DefaultPartitions.Of(l).EventFilter(): subject.DefaultPartitions.Event(l),
		l.LiveAll():                  l.Live("run.started"),
		subject.LiveEverything:       l.Live("notice"),
		subject.LiveTenant(l.Tenant): l.Live("notice"),
		subject.CommandFilter(c.Service, subject.DefaultPartitions.OfCommand(c)): subject.DefaultPartitions.Command(c),
		subject.CommandFilterAll(c.Service):                                      subject.DefaultPartitions.Command(c),
		subject.TimerFilter(c.Service):                                           tm.Fire(),
		subject.StreamSubjects(subject.StreamCommands)[0]:                        subject.DefaultPartitions.Command(c),
		subject.TimerSubjects(tm.Service)[0]:                                     tm.Set(),
		subject.StreamSubjects(subject.StreamDead)[0]:                            c.Dead(),
		subject.DirectoryFilter(id.MustName("service")):                          subject.DirectoryKey(id.MustName("service"), c.Service, id.MustName("i-1")),
	} {
		if !matches(filter, s) {
			t.Errorf("%q does not match %q", filter, s)
		}
	}
	if subject.StreamSubjects("OTHER") != nil {
		t.Error("an unknown stream has subjects")
	}
	if matches(subject.TimerFilter(c.Service), tm.Set()) {
		t.Error("a schedule looks like a timer that is due")
	}
}

func TestEveryEventTypeCanBeAnnounced(t *testing.T) {
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal("x")}
	for _, info := range event.Catalogue {
		got, typ, err := subject.ParseLive(l.Live(string(info.Type)))
		if err != nil || got != l || typ != string(info.Type) {
			t.Errorf("%s: %v", info.Type, err)
		}
	}
}

func TestParseLiveRefusesWhatIsNoType(t *testing.T) {
	for _, typ := range []string{"", ">", "*", "tool.*", "tool.>", "tool..called", ".tool", "tool.", "Tool", "tool called", "t\x00", "tool-called", "é"} {
		if _, _, err := subject.ParseLive("live.default.session.s1." + typ); !errors.Is(err, subject.ErrInvalid) {
			t.Errorf("type %q was let through", typ)
		}
	}
}

// TestPayloadsOfOthersHaveOtherNames: references do not reach other tenants.
func TestPayloadsOfOthersHaveOtherNames(t *testing.T) {
	for _, local := range []string{"", "task", "other.task.t1", "task.t1.x", "task.*", "nothing.t1", "task.t 1"} {
		if l, err := subject.LogOf(id.DefaultTenant, local); !errors.Is(err, subject.ErrInvalid) {
			t.Errorf("%q leads to %v", local, l)
		}
	}
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal("x")}
	for _, digest := range []string{"", "00", strings.Repeat("0G", 32), strings.Repeat("0A", 32), strings.Repeat("a", 63), strings.Repeat("a", 65), strings.Repeat(".", 64)} {
		if name, err := subject.PayloadName(l, digest); !errors.Is(err, subject.ErrInvalid) {
			t.Errorf("%q is in the name %q", digest, name)
		}
	}
	if _, err := subject.LogOf(id.Tenant{}, "task.t1"); !errors.Is(err, subject.ErrInvalid) {
		t.Error("a log has no tenant")
	}
}

func TestCatalogue(t *testing.T) {
	for _, f := range subject.Catalogue {
		whatParses(t, f.Example)
		p, e := strings.Split(f.Pattern, "."), strings.Split(f.Example, ".")
		for i := range p {
			if p[i] != e[i] && !strings.HasPrefix(p[i], "<") {
				t.Errorf("example %q does not fit %q", f.Example, f.Pattern)
			}
		}
		if len(e) < len(p) || len(e) > len(p) && !strings.HasSuffix(f.Pattern, ".<type>") {
			t.Errorf("example %q does not fit %q", f.Example, f.Pattern)
		}
	}
}

// matches is the matching rule of NATS for a filter that ends in '>'.
func matches(filter, s string) bool {
	head, ok := strings.CutSuffix(filter, ">")
	return ok && strings.HasPrefix(s, head) && len(s) > len(head)
}
