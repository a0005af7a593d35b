package team

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/access"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxListed bounds the teams of one list. It reads the end of each team's log: 100 reads take
// about 50 ms.
const maxListed = 100

// listEnvelope bounds the size of a list excluding its teams.
const listEnvelope = 32 << 10

// mark is a place in the list of teams: those after it were created earlier.
type mark struct {
	created time.Time
	team    string
}

func markOf(created time.Time, team string) string {
	return created.UTC().Format(time.RFC3339Nano) + "_" + team
}

func parseMark(s string) (mark, error) {
	at, team, ok := strings.Cut(s, "_")
	created, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || !ok || team == "" {
		return mark{}, fault.Newf(fault.InvalidField, "before must be the next value of an earlier page.").At("before")
	}
	return mark{created, team}, nil
}

// precedes reports whether a team comes after the mark.
func (m mark) precedes(created time.Time, team string) bool {
	return created.Before(m.created) || created.Equal(m.created) && team > m.team
}

// list answers with the newest teams of the tenant that are not nested and that the principal sees.
func (s *Service) list(ctx context.Context, in cmd.TeamRequest) (cmd.TeamList, error) {
	notes := s.registry.teams(in.Tenant)
	who := access.Person{Subject: in.Principal, Operator: in.All}
	maps.DeleteFunc(notes, func(_ subject.Log, n note) bool { return !s.cfg.Access.MaySee(in.Tenant, n.Owner, who) })
	order := func(a, b subject.Log) int {
		return cmp.Or(notes[b].Created.Compare(notes[a].Created), cmp.Compare(a.Entity.String(), b.Entity.String()))
	}
	logs := slices.SortedFunc(maps.Keys(notes), order)
	if in.Before != "" {
		last, err := parseMark(in.Before)
		if err != nil {
			return cmd.TeamList{}, err
		}
		logs = slices.DeleteFunc(logs, func(l subject.Log) bool { return !last.precedes(notes[l].Created, l.Entity.String()) })
	}
	out := cmd.TeamList{Teams: []cmd.TeamView{}, Named: slices.Sorted(maps.Keys(s.named))}
	limit, room := min(cmp.Or(in.Limit, maxListed), maxListed), int(s.deps.Conn.NATS().MaxPayload())-listEnvelope
	for i, log := range logs {
		if len(out.Teams) == limit {
			out.Next, out.More = markOf(notes[logs[i-1]].Created, logs[i-1].Entity.String()), true
			break
		}
		v, err := s.view(ctx, in, log.Entity)
		switch {
		case errors.Is(err, fault.New(fault.TeamNotFound)): // its log has expired, or it is of another owner
		case err != nil:
			return cmd.TeamList{}, err
		default:
			if room -= len(encode(v)) + 1; room < 0 && len(out.Teams) > 0 {
				out.Next, out.More = markOf(notes[logs[i-1]].Created, logs[i-1].Entity.String()), true
				return out, nil
			}
			out.Teams = append(out.Teams, v)
		}
	}
	return out, nil
}
