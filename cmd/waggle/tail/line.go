package tail

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// summaryWidth fits beside the other columns on a wide terminal.
	summaryWidth = 120
	// failureWidth holds a provider's full message beside the other columns.
	failureWidth = 1000
)

// Line returns the event on one line. The line cannot steer the terminal, whatever the event holds.
func Line(e event.Event, color bool) string {
	return fmt.Sprintf("%s %s %s %s %s",
		terminal.Paint(color, terminal.Dim, e.Time.Local().Format("15:04:05.000")),
		terminal.Paint(color, terminal.Blue, entity(e.Subject)),
		terminal.Paint(color, terminal.Dim, fmt.Sprintf("%5d", e.Sequence)),
		terminal.Paint(color, style(e.Type), fmt.Sprintf("%-18s", terminal.Line(string(e.Type), 40))),
		terminal.Line(summary(e), widthOf(e)))
}

// widthOf returns the width of an event's summary: a failure gets the full message.
func widthOf(e event.Event) int {
	if style(e.Type) == terminal.Red {
		return failureWidth
	}
	return summaryWidth
}

// entity returns the log without its tenant, in the form that the command accepts.
func entity(name string) string {
	l, err := subject.ParseName(name)
	if err != nil {
		return terminal.Line(name, 80)
	}
	return string(l.Kind) + "/" + l.Entity.String()
}

func style(t event.Type) terminal.Style {
	kind, what, _ := strings.Cut(string(t), ".")
	switch {
	case what == "failed" || what == "unknown" || what == "refused" || kind == "error":
		return terminal.Red
	case kind == "run":
		return terminal.Green
	case kind == "tool":
		return terminal.Cyan
	case kind == "reasoning":
		return terminal.Dim
	case kind == "notice" || what == "discarded" || what == "cancelled":
		return terminal.Yellow
	}
	return terminal.Plain
}

// shown lists the most telling members of an event's data, in this order. --json shows the others.
var shown = []string{
	"content", "text", "tool", "arguments", "result", "code", "message", "reason",
	"attempt", "worker", "model", "next_model", "stop_reason", "stop_detail", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens",
	"dialect", "duration_ms",
}

// bare members are shown without their name.
var bare = map[string]bool{"content": true, "text": true, "tool": true, "arguments": true, "message": true}

func summary(e event.Event) string {
	var data map[string]json.RawMessage
	if json.Unmarshal(e.Data, &data) != nil {
		return string(e.Data)
	}
	var parts []string
	for _, key := range shown {
		text := value(data[key])
		switch {
		case text == "", key == "attempt" && text == "1": // the usual value
		case bare[key]:
			parts = append(parts, text)
		default:
			parts = append(parts, key+"="+text)
		}
	}
	return strings.Join(append(provider(data["provider"]), parts...), " ")
}

// provider returns the model provider's message about a failed request, which an operator looks for first.
func provider(raw json.RawMessage) []string {
	var p event.ProviderError
	if raw == nil || json.Unmarshal(raw, &p) != nil {
		return nil
	}
	var parts []string
	for _, v := range []struct{ name, text string }{
		{"status", strings.TrimPrefix(strconv.Itoa(p.Status), "0")}, {"code", p.Code}, {"request_id", p.RequestID}, {"said", p.Message},
	} {
		if v.text != "" {
			parts = append(parts, "provider_"+v.name+"="+v.text)
		}
	}
	return parts
}

func value(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
