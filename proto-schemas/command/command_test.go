package command_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/internal/hostile"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func sample() command.Command {
	return command.Command{
		ID: "c1", Service: command.Session, Verb: command.SendMessage, Tenant: id.DefaultTenant, Key: id.EntityFromExternal("s1"),
		Principal: "alice", Source: "gateway/x", Time: time.Unix(1, 0).UTC(), Data: []byte(`{"content":"hi","new":[1]}`), TraceParent: "00-1-2-01",
	}
}

func TestRoundTrip(t *testing.T) {
	c := sample()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var got command.Command
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(got)
	if err != nil || string(again) != string(raw) {
		t.Fatalf("%s became %s, %v", raw, again, err)
	}
	addr, err := subject.DefaultPartitions.ParseCommand(subject.DefaultPartitions.Command(got.Address()))
	if err != nil || addr != c.Address() {
		t.Fatalf("address %v, %v", addr, err)
	}
}

func TestACommandFromTheBusIsValidated(t *testing.T) {
	for _, bad := range []string{`{"tenant":"a.b"}`, `{"key":"*"}`, `{"service":">"}`, `{"verb":""}`} {
		var c command.Command
		if err := json.Unmarshal([]byte(bad), &c); err == nil {
			t.Errorf("%s was let through", bad)
		}
	}
}

func TestDecode(t *testing.T) {
	c := sample()
	var m command.UserMessage
	if err := c.Decode(&m); err != nil || m.Content != "hi" {
		t.Fatalf("%+v, %v", m, err)
	}
	c.Data = nil
	if err := c.Decode(&m); err == nil || !strings.Contains(err.Error(), "session.send_message") {
		t.Fatalf("the error does not name the command: %v", err)
	}
}

// TestDedupeIDTellsAddresseesApart: ids are only unique for one addressee, and all subjects of the stream share
// dedupe ids. A client's id must not collide with another addressee's.
func TestDedupeIDTellsAddresseesApart(t *testing.T) {
	type addressed struct {
		service id.Name
		tenant  id.Tenant
		key     id.Entity
		id      string
	}
	seen := map[string]addressed{}
	tenants := []id.Tenant{id.DefaultTenant}
	other, err := id.ParseTenant("default-session-s1")
	if err != nil {
		t.Fatal(err)
	}
	tenants = append(tenants, other)
	hostile.Strings(6, 20_000, func(s string) {
		for _, service := range []id.Name{command.Session, command.Worker} {
			for _, tenant := range tenants {
				a := addressed{service, tenant, id.EntityFromExternal(s), s}
				b := addressed{service, tenant, id.EntityFromExternal("s1"), s}
				for _, x := range []addressed{a, b} {
					c := command.Command{ID: x.id, Service: x.service, Tenant: x.tenant, Key: x.key}
					if y, ok := seen[c.DedupeID()]; ok && y != x {
						t.Fatalf("%+v and %+v share %q", x, y, c.DedupeID())
					}
					seen[c.DedupeID()] = x
				}
			}
		}
	})
	t.Logf("%d distinct dedupe ids", len(seen))
}

// Whatever the answer, the load is the given one, or -1: a gateway that omits it has still accepted the call.
func FuzzParseCallTaken(f *testing.F) {
	for _, answer := range []string{"+", "+0", "+12", "-", "", "+-1", "+x", "+ 1", "+99999999999999999999"} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		load, taken := command.ParseCallTaken(answer)
		if taken != strings.HasPrefix(string(answer), "+") || load < -1 || load >= 0 && !taken {
			t.Fatalf("%q: %d, %t", answer, load, taken)
		}
		if again, ok := command.ParseCallTaken(command.CallTaken(max(load, 0))); !ok || again != max(load, 0) {
			t.Fatalf("%d becomes %d, %t", load, again, ok)
		}
	})
}
