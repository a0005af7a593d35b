package snapshot

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// mostOfArrow is the part of a message, in UTF-16 units, that a diagram shows.
const mostOfArrow = 300

type arrowKey struct{ team, id, member string }

// arrows folds the messages of a team and of its nested teams.
type arrows struct {
	all    []wire.SnapshotArrow
	sides  []string
	places map[arrowKey]int
}

func (a arrows) fork() arrows {
	return arrows{slices.Clone(a.all), slices.Clone(a.sides), maps.Clone(a.places)}
}

// take takes team.message or team.message_dropped; e is the event of the log that holds it.
func (a *arrows) take(in inside, e event.Event) {
	var d struct {
		ID      string        `json:"message_id"`
		Member  string        `json:"member"`
		Content string        `json:"content"`
		Sender  *event.Sender `json:"sender"`
		Reason  string        `json:"reason"`
	}
	if json.Unmarshal(in.Data, &d) != nil {
		return
	}
	key := arrowKey{in.route, d.ID, d.Member}
	one := wire.SnapshotArrow{ID: d.ID, Seq: e.Sequence, Time: e.Time, To: "@" + join(in.route, d.Member)}
	if in.Type == event.TeamMessageDropped {
		one.Dropped = &wire.SnapshotDropped{Seq: e.Sequence, Reason: d.Reason}
		if n, is := a.places[key]; is {
			a.all[n].Dropped = one.Dropped
			return
		}
		one.From = one.To // its beginning is not in the log any more
	} else {
		one.From, one.Text = sideOf(d.Sender), short(d.Content)
		above, name := split(in.route)
		if _, handed := a.places[arrowKey{above, d.ID, name}]; handed && in.route != "" {
			one.Handed, one.From = true, "@"+in.route
		}
	}
	a.places[key] = len(a.all)
	a.all = append(a.all, one)
	for _, side := range []string{one.From, one.To} {
		if !slices.Contains(a.sides, side) {
			a.sides = append(a.sides, side)
		}
	}
}

func sideOf(s *event.Sender) string {
	switch {
	case s == nil:
		return "people"
	case s.Kind == event.SenderSystem:
		return "board"
	}
	return "@" + cmp.Or(s.Route, s.Name)
}

func short(text string) string {
	head, more := cut(text, mostOfArrow)
	if more {
		return head + "…"
	}
	return head
}
