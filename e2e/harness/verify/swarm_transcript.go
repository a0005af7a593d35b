package verify

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/e2e/harness/client"
)

// Part is one party of a transcript.
type Part struct {
	Name string
	Conn *client.Swarm
}

// SwarmTranscript returns the frames that each party sent and got as a txtar archive.
// Ids get names in the order in which they are first seen; times, durations and tokens
// get a letter. Frames of a child task are a file of their own, because the logs of two tasks have no order between them.
func SwarmTranscript(parts ...Part) string {
	n := &normalizer{names: map[string]string{}}
	var b strings.Builder
	for _, p := range parts {
		section(&b, p.Name+" sends", n.all(p.Conn.Sent()))
		var own, child []string
		for _, raw := range p.Conn.Got() {
			if strings.Contains(raw, `"isChildAgentMessage":true`) {
				child = append(child, raw)
				continue
			}
			own = append(own, raw)
		}
		section(&b, p.Name+" gets", n.all(own))
		if again := p.Conn.Again(); len(again) > 0 {
			section(&b, p.Name+" gets once more", n.all(again))
		}
		if len(child) > 0 {
			section(&b, p.Name+" gets of the child", n.all(child))
		}
	}
	return b.String()
}

func section(b *strings.Builder, name string, lines []string) {
	fmt.Fprintf(b, "-- %s --\n%s\n", name, strings.Join(lines, "\n"))
}

// normalizer replaces what differs between runs.
type normalizer struct{ names map[string]string }

// unique is an id that is made at random: UUIDs, and names of events and of commands,
// which are made of such.
var unique = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-v]{32}|[0-9a-f]{20,}`)

// framed is the id that a Bee gives to a frame.
var framed = regexp.MustCompile(`frame-\d+`)

// longText is the length in bytes from which a text is shown by length and digest.
const longText = 4 << 10

// fleeting are members whose values are replaced by a letter. The id of an answer is
// made of the event's, so it is left out, but where the protocol gives it a meaning.
var fleeting = map[string]string{
	"timestamp": "T", "createdAt": "T", "completedAt": "T", "failedAt": "T", "registeredAt": "T", "deadline": "T",
	"executionTime": "N", "timeout": "N", "resumeToken": "R", "version": "V", "orchestratorVersion": "V",
}

func (n *normalizer) all(frames []string) []string {
	out := make([]string, 0, len(frames))
	for _, raw := range frames {
		var m map[string]any
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			out = append(out, err.Error())
			continue
		}
		kind, _ := m["type"].(string)
		if strings.HasPrefix(kind, "agent.agent.list.") || strings.HasPrefix(kind, "client.mcp.server.list.") { // asked for as often as it takes
			continue
		}
		delete(m, "seq")
		if !slices.Contains([]string{"task.execute", "service.task.execute"}, kind) || m["requestId"] != nil {
			delete(m, "id")
		}
		if _, answer := m["requestId"]; answer {
			m["requestId"] = "ID"
		}
		line, err := json.Marshal(n.value("", m))
		if err != nil {
			line = []byte(err.Error())
		}
		out = append(out, string(line))
	}
	return out
}

func (n *normalizer) value(name string, v any) any {
	if letter, ok := fleeting[name]; ok {
		return letter
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			v[k] = n.value(k, v[k])
		}
		return v
	case []any:
		for i := range v {
			v[i] = n.value("", v[i])
		}
		return v
	case string:
		if len(v) > longText {
			return fmt.Sprintf("(%d bytes, sha256 %.8x)", len(v), sha256.Sum256([]byte(v)))
		}
		v = framed.ReplaceAllString(v, "frame") // their number depends on the number of polls
		return unique.ReplaceAllStringFunc(v, func(id string) string {
			if n.names[id] == "" {
				n.names[id] = fmt.Sprintf("id-%d", len(n.names)+1)
			}
			return n.names[id]
		})
	}
	return v
}

func sortedKeys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
