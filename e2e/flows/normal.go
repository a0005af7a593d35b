package flows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// order is how the members of a frame are written; those of objects in it follow the
// alphabet.
var order = []string{"event", "session_id", "seq", "event_id", "step_id", "content", "metadata", "signed_state", "timestamp", "show_content"}

// ids are the members that hold names which are new in every run, and what stands
// for them.
var ids = map[string]string{
	"session_id": "session", "original_session_id": "session", "run_id": "run", "execution_id": "exec", "message_id": "msg",
	"plan_id": "plan", "connection_id": "conn", "call_id": "call", "step_id": "step", "confirm_step_id": "step", "command_id": "cmd",
	"worker": "worker",
}

// masks are the members whose values differ between runs.
var masks = map[string]string{
	"event_id": "<event id>", "last_event_id": "<event id>", "server_time": "<time>", "valid_until": "<time>",
	"elapsed_seconds": "<s>", "duration_seconds": "<s>", "server_uptime_seconds": "<s>", "duration": "<s>",
	"server_version": "<version>", "state_hash": "<hash>", "client_state_hash": "<hash>", "checksum": "<hash>", "signature": "<hmac>",
	"state_size_bytes": "<n>",
}

// seqs are the members that count events. Their values depend on how the
// text is cut into deltas.
var seqs = []string{"seq", "last_seq", "exported_seq", "merged_from", "first_seq", "replayed", "count", "first_available_seq"}

// normal makes what was said in a scene the same every time.
type normal struct {
	exact bool // seqs are: no text has more than one piece
	names map[string]string
	count map[string]int
}

// frame is a JSON object that is being normalised.
type frame = map[string]any

func decode(raw []byte) (frame, error) {
	var f frame
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("decode a frame: %w", err)
	}
	return f, nil
}

// learn gives names to the ids in a value, in the order in which they are met.
func (n *normal) learn(v any) {
	switch v := v.(type) {
	case frame:
		for _, k := range keys(v) {
			s, ok := v[k].(string)
			if kind := ids[k]; ok && kind != "" && n.names[s] == "" && s != "" && !strings.HasPrefix(s, "solve_") {
				n.count[kind]++
				n.names[s] = fmt.Sprintf("<%s %d>", kind, n.count[kind])
			}
			n.learn(v[k])
		}
	case []any:
		for _, x := range v {
			n.learn(x)
		}
	}
}

func keys(f frame) []string {
	rank := func(k string) int {
		if i := slices.Index(order, k); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedFunc(maps.Keys(f), func(a, b string) int {
		if ra, rb := rank(a), rank(b); ra != rb {
			return ra - rb
		}
		return strings.Compare(a, b)
	})
}

// mask replaces what differs from run to run in a frame that was received.
func (n *normal) mask(v any) any {
	switch v := v.(type) {
	case frame:
		for k, x := range v {
			switch {
			case masks[k] != "":
				v[k] = masks[k]
			case strings.HasSuffix(k, "_ms"):
				v[k] = "<ms>"
			case k == "timestamp" || strings.HasSuffix(k, "_at"):
				v[k] = "<time>"
			case slices.Contains(seqs, k) && !n.exact:
				v[k] = "<seq>"
			case k == "state" && v["signature"] != nil:
				v[k] = "<the signed text>"
			default:
				v[k] = n.mask(x)
			}
		}
		return v
	case []any:
		for i, x := range v {
			v[i] = n.mask(x)
		}
	}
	return v
}

// rename replaces the ids in a value, also within texts.
func (n *normal) rename(v any, r *strings.Replacer) any {
	switch v := v.(type) {
	case frame:
		for k, x := range v {
			v[k] = n.rename(x, r)
		}
	case []any:
		for i, x := range v {
			v[i] = n.rename(x, r)
		}
	case string:
		return r.Replace(v)
	}
	return v
}

// replacer knows all ids, the longest first: one may begin with another.
func (n *normal) replacer() *strings.Replacer {
	names := slices.SortedFunc(maps.Keys(n.names), func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, id := range names {
		pairs = append(pairs, id, n.names[id])
	}
	return strings.NewReplacer(pairs...)
}

// object returns a member that is an object, or an empty one.
func object(f frame, name string) frame {
	o, _ := f[name].(frame)
	return o
}

func text(f frame, name string) string {
	s, _ := f[name].(string)
	return s
}

// merge joins the pieces of texts that follow each other: how a model's text is cut
// depends on how fast it comes.
func merge(frames []frame) []frame {
	var out []frame
	for _, f := range frames {
		if len(out) > 0 {
			if last := out[len(out)-1]; piece(f) && piece(last) &&
				text(object(f, "metadata"), "message_id") == text(object(last, "metadata"), "message_id") {
				last["content"] = text(last, "content") + text(f, "content")
				last["show_content"] = shown(text(last, "content"))
				continue
			}
		}
		out = append(out, f)
	}
	return out
}

// shown is how much of a text people are shown.
func shown(s string) string {
	const most = 200 // characters, as the protocol says
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// piece reports whether a frame holds a piece of a model's text.
func piece(f frame) bool {
	m := object(f, "metadata")
	return f["event"] == myagent.AgentPartialAnswer && m["is_final"] == false && m["merged_from"] == nil
}

// racing reports whether a frame answers a command by itself: it comes on another way
// than the events of the log, and may come before or after them.
func racing(f frame) bool {
	m := object(f, "metadata")
	return f["seq"] == nil && (m["ok"] != nil || object(m, "context")["command_id"] != nil)
}

// sorted puts what comes in any order into one. Answers to commands come last. With
// concurrent tasks, what happens to each between two events of the whole run comes
// task by task, and the progress after that.
func sorted(frames []frame, flow Flow) []frame {
	var out, answers []frame
	tasks, progress := map[string][]frame{}, []frame(nil)
	flush := func() {
		for _, id := range slices.Sorted(maps.Keys(tasks)) {
			out = append(out, tasks[id]...)
		}
		out = append(out, progress...)
		tasks, progress = map[string][]frame{}, nil
	}
	for _, f := range frames {
		id := first(text(object(f, "metadata"), "task_id"), text(object(f, "content"), "task_id"))
		switch {
		case racing(f), flow.Live && text(object(f, "metadata"), "action") == myagent.ActionReplay:
			answers = append(answers, f)
		case !flow.Concurrent || id == "":
			flush()
			out = append(out, f)
		case f["event"] == myagent.SolverProgress:
			object(f, "metadata")["task_id"], object(f, "content")["current_task"] = "<one of them>", "<one of them>"
			object(f, "content")["status"] = "<its end>"
			progress = append(progress, f)
		default:
			tasks[id] = append(tasks[id], f)
		}
	}
	flush()
	return merge(calls(append(out, answers...)))
}

// calls puts what comes of tools that are called together into the order of their
// calls.
func calls(frames []frame) []frame {
	rank := map[string]int{}
	for i := 0; i < len(frames); {
		n := i
		for ; n < len(frames) && callOf(frames[n]) != ""; n++ {
			if id := callOf(frames[n]); frames[n]["event"] == myagent.AgentToolCall {
				rank[id] = len(rank)
			}
		}
		slices.SortStableFunc(frames[i:n], func(a, b frame) int { return rank[callOf(a)] - rank[callOf(b)] })
		i = n + 1
	}
	return frames
}

func callOf(f frame) string { return text(object(f, "metadata"), "call_id") }

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// encode writes a frame on one line.
func encode(f frame) string {
	var b strings.Builder
	for _, k := range keys(f) {
		if k == "timestamp" || k == "event_id" {
			continue // every frame has them: see note
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q: %s", k, value(f[k]))
	}
	return "{" + b.String() + "}"
}

func value(v any) string {
	b, err := plainjson.Marshal(v)
	if err != nil { // cannot happen: it was JSON
		return err.Error()
	}
	return string(b)
}
