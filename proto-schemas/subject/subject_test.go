package subject_test

import (
	"errors"
	"hash/fnv"
	"slices"
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
		tokens(t, l.Event(), 5)
		tokens(t, l.Live("message.delta"), 6)
		tokens(t, c.Subject(), 6)
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
	if got, err := subject.ParseEvent(l.Event()); err != nil || got != l {
		t.Fatalf("event %q: %v, %v", l.Event(), got, err)
	}
	if got, typ, err := subject.ParseLive(l.Live("tool.called")); err != nil || got != l || typ != "tool.called" {
		t.Fatalf("live %q: %v, %v", l, got, err)
	}
	if got, err := subject.ParseCommand(c.Subject()); err != nil || got != c {
		t.Fatalf("command %q: %v, %v", c.Subject(), got, err)
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
		"name":    func() (string, error) { l, err := subject.ParseName(s); return l.Name(), err },
		"event":   func() (string, error) { l, err := subject.ParseEvent(s); return l.Event(), err },
		"live":    func() (string, error) { l, typ, err := subject.ParseLive(s); return l.Live(typ), err },
		"command": func() (string, error) { c, err := subject.ParseCommand(s); return c.Subject(), err },
		"dead":    func() (string, error) { c, err := subject.ParseDead(s); return c.Dead(), err },
		"timer":   func() (string, error) { tm, err := subject.ParseTimer(s); return tm.Fire(), err },
		"payload": func() (string, error) {
			l, digest, err := subject.ParsePayloadName(s)
			if err != nil {
				return "", err
			}
			return subject.PayloadName(l, digest)
		},
		"partition": func() (string, error) {
			p, err := subject.ParsePartition(s)
			return p.String(), err
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
		if got := l.Partition(); got.String() != want || uint32(got) != h.Sum32()%16 {
			t.Errorf("partition of %s is %s, want %s", name, got, want)
		}
		if l.Stream() != "EVT_"+want || l.Event() != "evt."+want+"."+name {
			t.Errorf("%s is stored in %s under %s", name, l.Stream(), l.Event())
		}
	}
}

func TestPartitionsAreEven(t *testing.T) {
	var count [subject.Partitions]int
	const logs = 16_000
	for i := range logs {
		l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("session " + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune(i)))}
		count[l.Partition()]++
	}
	for p, n := range count {
		if n < logs/subject.Partitions*7/10 || n > logs/subject.Partitions*13/10 {
			t.Errorf("partition %d has %d of %d logs", p, n, logs)
		}
	}
}

func TestPartitionTokens(t *testing.T) {
	all := subject.AllPartitions()
	if len(all) != subject.Partitions {
		t.Fatalf("%d partitions", len(all))
	}
	for i, p := range all {
		got, err := subject.ParsePartition(p.String())
		if err != nil || got != p || int(p) != i {
			t.Fatalf("partition %d: %v, %v", i, got, err)
		}
	}
	for _, s := range []string{"", "0", "16", "99", "-1", "+1", "000", "1 ", "0x"} {
		if _, err := subject.ParsePartition(s); !errors.Is(err, subject.ErrInvalid) {
			t.Fatalf("partition %q was let through", s)
		}
	}
}

func TestFilters(t *testing.T) {
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}
	c := subject.Command{Service: id.MustName("session"), Tenant: l.Tenant, Key: l.Entity, Verb: id.MustName("open")}
	tm := subject.Timer{Service: c.Service, Tenant: l.Tenant, Key: l.Entity, Name: id.MustName("expire")}
	for filter, s := range map[string]string{
		l.Partition().EventFilter():                       l.Event(),
		l.LiveAll():                                       l.Live("run.started"),
		subject.LiveEverything:                            l.Live("notice"),
		subject.LiveTenant(l.Tenant):                      l.Live("notice"),
		subject.CommandFilter(c.Service, c.Partition()):   c.Subject(),
		subject.CommandFilterAll(c.Service):               c.Subject(),
		subject.TimerFilter(c.Service):                    tm.Fire(),
		subject.StreamSubjects(subject.StreamCommands)[0]: c.Subject(),
		subject.TimerSubjects(tm.Service)[0]:              tm.Set(),
		subject.StreamSubjects(subject.StreamDead)[0]:     c.Dead(),
		subject.DirectoryFilter(id.MustName("service")):   subject.DirectoryKey(id.MustName("service"), c.Service, id.MustName("i-1")),
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
