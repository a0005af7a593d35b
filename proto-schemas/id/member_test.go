package id_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/internal/hostile"
)

func team(t *testing.T, s string) id.Entity {
	t.Helper()
	e, err := id.ParseEntity(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestMembersHaveIDsOfTheirOwn: whatever its name, a member has one legal id, which differs from all others, for
// agents and teams, here and in another team.
func TestMembersHaveIDsOfTheirOwn(t *testing.T) {
	sources := map[id.Entity]string{}
	hostile.Strings(7, 3_000, func(name string) {
		for _, of := range []string{"team_0123456789abcdef", "t", "h_x", "a-a-t"} {
			for kind, make := range map[string]func(id.Entity, string) (id.Entity, error){"agent": id.MemberAgent, "team": id.MemberTeam} {
				parent := team(t, of)
				got, err := make(parent, name)
				if err != nil {
					t.Fatalf("%s %q of %s: %v", kind, name, of, err)
				}
				again, err := make(parent, name)
				if err != nil || again != got || !longToken.MatchString(got.String()) {
					t.Fatalf("%s %q of %s is %s and then %s", kind, name, of, got, again)
				}
				source := fmt.Sprintf("%s %q of %s", kind, name, of)
				if other, ok := sources[got]; ok && other != source {
					t.Fatalf("%s and %s are both %s", source, other, got)
				}
				sources[got] = source
				if back, ok := id.TeamOf(got); !ok || back != parent {
					t.Fatalf("%s is of the team %s, %v", source, back, ok)
				}
			}
		}
	})
	t.Logf("%d members", len(sources))
}

// TestNestedTeams: TeamOf finds the teams around a member one by one, at any legal nesting.
func TestNestedTeams(t *testing.T) {
	const deepest = 8
	of := team(t, "team_0123456789abcdef")
	chain := []id.Entity{of}
	for range deepest - 1 {
		next, err := id.MemberTeam(chain[len(chain)-1], "inner")
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, next)
	}
	leaf, err := id.MemberAgent(chain[len(chain)-1], "Coder")
	if err != nil {
		t.Fatalf("%d teams in each other leave no room for a member: %v", deepest, err)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		parent, ok := id.TeamOf(leaf)
		if !ok || parent != chain[i] {
			t.Fatalf("%s is of %s, not of %s", leaf, parent, chain[i])
		}
		leaf = parent
	}
	if parent, ok := id.TeamOf(leaf); ok {
		t.Fatalf("a root team is of %s", parent)
	}
}

func TestWhatIsNoMember(t *testing.T) {
	for _, s := range []string{
		"t", "team_0123456789abcdef", "-a0123456789", "-t0123456789", "x-b0123456789", "x-a012345678", strings.Repeat("a", 128),
	} {
		if parent, ok := id.TeamOf(team(t, s)); ok || !parent.IsZero() {
			t.Errorf("%s is of the team %s", s, parent)
		}
	}
	if _, ok := id.TeamOf(id.Entity{}); ok {
		t.Error("nothing is a member")
	}
}

func TestATeamWithoutRoomForMembers(t *testing.T) {
	long := team(t, strings.Repeat("a", 120))
	if _, err := id.MemberAgent(long, "x"); !errors.Is(err, id.ErrInvalid) {
		t.Errorf("an id that is too long was made: %v", err)
	}
	if _, err := id.MemberTeam(long, "x"); !errors.Is(err, id.ErrInvalid) {
		t.Errorf("an id that is too long was made: %v", err)
	}
}
