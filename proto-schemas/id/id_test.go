package id_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/internal/hostile"
)

var (
	shortToken = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	longToken  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
)

func TestOnlyTokensAreAccepted(t *testing.T) {
	seen, legal := 0, 0
	hostile.Strings(1, 20_000, func(s string) {
		seen++
		tenant, err := id.ParseTenant(s)
		expect(t, "tenant", s, tenant.String(), err, shortToken.MatchString(s))
		name, err := id.ParseName(s)
		expect(t, "name", s, name.String(), err, shortToken.MatchString(s))
		entity, err := id.ParseEntity(s)
		expect(t, "entity", s, entity.String(), err, longToken.MatchString(s))
		if err == nil {
			legal++
		}
	})
	if legal < seen/10 || legal > seen*9/10 {
		t.Fatalf("%d of %d strings are legal: the sample proves little", legal, seen)
	}
	t.Logf("%d strings, %d of them legal entities", seen, legal)
}

func expect(t *testing.T, what, in, out string, err error, legal bool) {
	t.Helper()
	switch {
	case legal && (err != nil || out != in):
		t.Fatalf("%s %q: got %q, %v", what, in, out, err)
	case !legal && (!errors.Is(err, id.ErrInvalid) || out != ""):
		t.Fatalf("%s %q was let through: got %q, %v", what, in, out, err)
	case !legal && len(err.Error()) > 300:
		t.Fatalf("%s: the error quotes all of %d bytes", what, len(in))
	}
}

func TestEntityFromExternalIsInjectiveAndLegal(t *testing.T) {
	sources := map[string]string{}
	add := func(s string) {
		token := id.EntityFromExternal(s).String()
		if !longToken.MatchString(token) {
			t.Fatalf("%q became %q, which is no token", s, token)
		}
		if other, ok := sources[token]; ok && other != s {
			t.Fatalf("%q and %q both became %q", s, other, token)
		}
		sources[token] = s
		if longToken.MatchString(s) && !strings.HasPrefix(s, "h_") && token != s {
			t.Fatalf("legal id %q became %q", s, token)
		}
		if parsed, err := id.ParseEntity(token); err != nil || parsed != id.EntityFromExternal(s) {
			t.Fatalf("%q does not parse back: %v", token, err)
		}
	}
	hostile.Strings(2, 10_000, func(s string) {
		add(s)
		// A client may send the token of another client's id.
		add(id.EntityFromExternal(s).String())
	})
	t.Logf("%d distinct ids", len(sources))
}

func FuzzEntityFromExternal(f *testing.F) {
	for _, s := range hostile.Samples {
		f.Add(s, s+"x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ea, eb := id.EntityFromExternal(a), id.EntityFromExternal(b)
		if !longToken.MatchString(ea.String()) {
			t.Fatalf("%q became %q", a, ea)
		}
		if (a == b) != (ea == eb) {
			t.Fatalf("%q and %q became %q and %q", a, b, ea, eb)
		}
	})
}

func TestText(t *testing.T) {
	type all struct {
		T id.Tenant
		E id.Entity
		N id.Name
	}
	want := all{id.DefaultTenant, id.EntityFromExternal("a b"), id.MustName("session")}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got all
	if err := json.Unmarshal(raw, &got); err != nil || got != want {
		t.Fatalf("%s came back as %v, %v", raw, got, err)
	}
	for _, bad := range []string{`{"T":"a.b"}`, `{"E":"*"}`, `{"N":">"}`, `{"T":""}`, `{"E":"\u0000"}`} {
		if err := json.Unmarshal([]byte(bad), &got); !errors.Is(err, id.ErrInvalid) {
			t.Fatalf("%s was let through: %v", bad, err)
		}
	}
	if want.T.IsZero() || want.E.IsZero() || want.N.IsZero() || !(id.Tenant{}).IsZero() || !(id.Entity{}).IsZero() || !(id.Name{}).IsZero() {
		t.Fatal("IsZero is wrong")
	}
}

func TestKind(t *testing.T) {
	for _, k := range []id.Kind{id.KindSession, id.KindTask, id.KindMember, id.KindTeam, id.KindInbox, id.KindCall} {
		if got, err := id.ParseKind(string(k)); err != nil || got != k {
			t.Fatalf("%s: %v", k, err)
		}
	}
	for _, s := range append([]string{"Session", "sessions", "service"}, hostile.Samples...) {
		if _, err := id.ParseKind(s); !errors.Is(err, id.ErrInvalid) {
			t.Fatalf("kind %q was let through: %v", s, err)
		}
	}
}

func TestMustNamePanicsOnABadName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	id.MustName("a.b")
}
