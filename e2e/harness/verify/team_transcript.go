package verify

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// theTeam heads what a transcript says of the watched team itself.
const theTeam = "the team"

// TeamTranscript returns the frames that a client sent and that two viewers of the same team
// got, one in the flattened form and, unless it is nil, one in envelopes, as a txtar archive. Members work
// side by side, so the frames about each are a part of their own, in their order. Values that
// differ between runs are replaced: ids by names in the order in which they are first seen, times
// and durations by letters; pieces of one segment that follow each other are one.
func TeamTranscript(sent []string, flat, deep *client.Team) string {
	n := &teamNormalizer{names: map[string]string{}}
	var b strings.Builder
	section(&b, "sent", n.all(sent))
	section(&b, "greeting and answers", n.all(raws(flat.Unnumbered())))
	n.parts(&b, "", flat.Frames())
	if deep != nil {
		n.parts(&b, "envelope: ", deep.Frames())
	}
	return b.String()
}

func raws(frames []client.TeamFrame) []string {
	out := make([]string, 0, len(frames))
	for _, f := range frames {
		out = append(out, f.Raw)
	}
	return out
}

type teamNormalizer struct{ names map[string]string }

// parts writes the frames of each route.
func (n *teamNormalizer) parts(b *strings.Builder, prefix string, frames []client.TeamFrame) {
	by := map[string][]string{}
	var order []string
	for _, f := range Joined(frames) {
		route := f.Route()
		if by[route] == nil {
			order = append(order, route)
		}
		by[route] = append(by[route], f.Raw)
	}
	slices.Sort(order)
	for _, route := range order {
		name := route
		if name == "" {
			name = theTeam
		}
		lines := n.all(by[route])
		if route != "" {
			lines = begun(lines)
		}
		section(b, prefix+name, lines)
	}
}

// begun leaves out that a nested team was idle when it began: whether its first message is
// there by then is a matter of time.
func begun(lines []string) (out []string) {
	const idle, running, both = `"new_status":"IDLE","old_status":"STARTING"`, `"new_status":"RUNNING","old_status":"IDLE"`, `"new_status":"RUNNING","old_status":"STARTING"`
	for i := 0; i < len(lines); i++ {
		if i+1 < len(lines) && strings.Contains(lines[i], idle) && strings.Contains(lines[i+1], running) {
			i++
			lines[i] = strings.Replace(lines[i], running, both, 1)
		}
		out = append(out, lines[i])
	}
	return out
}

// Joined returns the frames with the pieces of a segment that follow each other on a
// route made one: where a text is cut into pieces is a matter of time.
func Joined(frames []client.TeamFrame) []client.TeamFrame {
	var out []client.TeamFrame
	last := map[string]int{} // by route: the place in out of its last frame
	for _, f := range frames {
		route := f.Route()
		m := object(f.Raw)
		at, known := last[route]
		if piece := pieceOf(m); known && piece != nil {
			before := object(out[at].Raw)
			if p := pieceOf(before); p != nil && idOf(p) == idOf(piece) {
				join(p, piece)
				out[at].Raw, out[at].Sequence = line(before), f.Sequence
				continue
			}
		}
		last[route] = len(out)
		out = append(out, f)
	}
	return out
}

func object(raw string) map[string]any {
	var m map[string]any
	_ = json.Unmarshal([]byte(raw), &m) // the watcher has checked it
	return m
}

func line(v any) string {
	b, err := team.Encode(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// pieceOf returns the innermost object of a frame that is a piece of a segment, nil for
// other frames: a payload, or the data of a segment event.
func pieceOf(m map[string]any) map[string]any {
	for m != nil {
		if m["type"] == team.SegmentContent {
			if p, ok := m["payload"].(map[string]any); ok && p["id"] != nil {
				return p
			}
			return m
		}
		inner, _ := m["data"].(map[string]any)
		for _, name := range []string{"sub_team_event", "agent_event"} {
			if e, ok := inner[name].(map[string]any); ok {
				inner = e
			}
		}
		m = inner
	}
	return nil
}

func idOf(piece map[string]any) string {
	return fmt.Sprint(piece["id"], piece["segment_id"])
}

// join puts the text of a piece after that of another.
func join(to, piece map[string]any) {
	for _, p := range []map[string]any{to, piece} {
		if inner, ok := p["payload"].(map[string]any); ok {
			p["delta"] = inner["delta"]
		}
	}
	delta := fmt.Sprint(to["delta"], piece["delta"])
	if inner, ok := to["payload"].(map[string]any); ok {
		inner["delta"] = delta
		delete(to, "delta")
		return
	}
	to["delta"] = delta
}

// teamUnique is an id that is made at random, or of one.
var teamUnique = regexp.MustCompile(`team_[0-9a-f]{16}(?:-[at][0-9a-v]{10})*|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{20,}|[0-9a-v]{32}`)

// teamFleeting are members whose values are replaced by a letter, teamConstant those that
// are left out: they differ in every frame, or in none.
var (
	teamFleeting = map[string]string{"timestamp": "T", "duration_ms": "N", "session_id": "S"}
	teamConstant = []string{"event_id", "sequence", "source_node_id", "received_at", "origin", "run_version"}
)

func (n *teamNormalizer) all(frames []string) []string {
	out := make([]string, 0, len(frames))
	for _, raw := range frames {
		m := object(raw)
		if m == nil {
			out = append(out, raw) // a client may send other values than objects
			continue
		}
		text := line(n.value("", m))
		if kind, ok := m["type"].(string); ok { // it comes first on the wire, too
			delete(m, "type")
			text = strings.Replace(line(m), "{", `{"type":"`+kind+`",`, 1)
		}
		out = append(out, text)
	}
	return out
}

func (n *teamNormalizer) value(name string, v any) any {
	if letter, ok := teamFleeting[name]; ok {
		return letter
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range teamConstant {
			delete(v, k)
		}
		for _, k := range sortedKeys(v) {
			v[k] = n.value(k, v[k])
		}
	case []any:
		for i := range v {
			v[i] = n.value("", v[i])
		}
	case string:
		return teamUnique.ReplaceAllStringFunc(v, func(id string) string {
			if n.names[id] == "" {
				n.names[id] = fmt.Sprintf("id-%d", len(n.names)+1)
			}
			return n.names[id]
		})
	}
	return v
}
