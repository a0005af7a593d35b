package fold_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/aisdk/fold"
)

// client is what processUIMessageStream of the package ai makes of the chunks of one run, with its refusals: it looks for tool calls
// where that looks, and forgets open texts where that forgets them.
type client struct {
	parts     []map[string]any
	open      map[string]map[string]any // texts and reasoning, by kind and id
	metadata  map[string]any
	responses int
	streaming bool
	step      bool
	seven     bool
	failed    string
}

// take takes a chunk, and returns why a client refuses it, or why it has no place here.
func (c *client) take(data []byte) error {
	var chunk map[string]any
	if err := json.Unmarshal(data, &chunk); err != nil {
		return err
	}
	kind, _ := chunk["type"].(string)
	switch {
	case kind == fold.Start:
		if c.streaming {
			return fmt.Errorf("a start within a response")
		}
		c.streaming, c.step, c.open = true, false, map[string]map[string]any{}
		c.responses++
	case !c.streaming:
		return fmt.Errorf("%s outside of a response", kind)
	}
	if m, is := chunk["messageMetadata"].(map[string]any); is {
		if c.metadata == nil {
			c.metadata = map[string]any{}
		}
		maps.Copy(c.metadata, m)
	}
	return c.chunk(kind, chunk)
}

func (c *client) chunk(kind string, chunk map[string]any) error {
	id, _ := chunk["id"].(string)
	switch kind {
	case fold.Start, fold.MessageMetadata, fold.Abort:
	case fold.Error:
		c.failed, _ = chunk["errorText"].(string)
	case fold.StartStep, fold.FinishStep, fold.ResetStep, fold.Finish:
		return c.bounds(kind)
	case fold.TextStart, fold.ReasoningStart:
		name := strings.TrimSuffix(kind, "-start")
		if c.open[name+id] != nil {
			return fmt.Errorf("%s %s is open", name, id)
		}
		p := map[string]any{"type": name, "text": "", "providerMetadata": chunk["providerMetadata"]}
		c.open[name+id] = p
		c.parts = append(c.parts, p)
	case fold.TextDelta, fold.ReasoningDelta, fold.TextEnd, fold.ReasoningEnd:
		return c.texts(kind, id, chunk)
	case fold.File:
		c.parts = append(c.parts, map[string]any{"type": "file", "url": chunk["url"]})
	default:
		if strings.HasPrefix(kind, "tool-") {
			return c.tool(kind, chunk)
		}
		return c.data(kind, id, chunk)
	}
	return nil
}

func (c *client) bounds(kind string) error {
	switch kind {
	case fold.StartStep:
		if c.step {
			return fmt.Errorf("a step within a step")
		}
		c.step = true
		c.parts = append(c.parts, map[string]any{"type": "step-start"})
		return nil
	case fold.ResetStep:
		if !c.seven {
			return fmt.Errorf("ai 6 does not know reset-step")
		}
		c.parts, c.open = c.parts[:c.current()], map[string]map[string]any{}
		return nil
	}
	if len(c.open) > 0 {
		return fmt.Errorf("%s while a text is open", kind)
	}
	if kind == fold.FinishStep {
		if !c.step {
			return fmt.Errorf("the end of no step")
		}
		c.step = false
		return nil
	}
	if c.step {
		return fmt.Errorf("finish within a step")
	}
	c.streaming = false
	return nil
}

// current is where the parts of the newest step begin.
func (c *client) current() int {
	for i, p := range slices.Backward(c.parts) {
		if p["type"] == "step-start" {
			return i + 1
		}
	}
	return 0
}

func (c *client) texts(kind, id string, chunk map[string]any) error {
	name, end := strings.CutSuffix(kind, "-end")
	name = strings.TrimSuffix(name, "-delta")
	p := c.open[name+id]
	if p == nil {
		return fmt.Errorf("%s of %s, which is not open", kind, id)
	}
	if end {
		delete(c.open, name+id)
		if m := chunk["providerMetadata"]; m != nil {
			p["providerMetadata"] = m
		}
		return nil
	}
	delta, _ := chunk["delta"].(string)
	if delta == "" {
		return fmt.Errorf("an empty delta")
	}
	text, _ := p["text"].(string)
	p["text"] = text + delta
	return nil
}

func (c *client) tool(kind string, chunk map[string]any) error {
	from := 0
	if kind == fold.ToolInputAvailable {
		from = c.current()
	}
	i := slices.IndexFunc(c.parts[from:], func(p map[string]any) bool { return p["call"] == chunk["toolCallId"] })
	if i < 0 && kind != fold.ToolInputAvailable {
		return fmt.Errorf("%s of an unknown call", kind)
	}
	if i < 0 {
		if slices.ContainsFunc(c.parts, func(p map[string]any) bool { return p["call"] == chunk["toolCallId"] }) {
			return fmt.Errorf("the call %v gets a second part", chunk["toolCallId"])
		}
		c.parts = append(c.parts, map[string]any{"type": "tool", "call": chunk["toolCallId"], "name": chunk["toolName"]})
		from, i = 0, len(c.parts)-1
	}
	p := c.parts[from+i]
	p["state"] = kind
	for _, name := range []string{"input", "output", "errorText", "approvalId"} {
		if v, has := chunk[name]; has {
			p[name] = v
		}
	}
	return nil
}

func (c *client) data(kind, id string, chunk map[string]any) error {
	if !strings.HasPrefix(kind, "data-") {
		return fmt.Errorf("no client knows %s", kind)
	}
	if chunk["transient"] == true {
		return nil
	}
	for _, p := range c.parts {
		if p["type"] == kind && p["id"] == id {
			p["data"] = chunk["data"]
			return nil
		}
	}
	c.parts = append(c.parts, map[string]any{"type": kind, "id": id, "data": chunk["data"]})
	return nil
}

// seen are the parts that count, with texts that were cut and begun anew put together.
func (c *client) seen() (out []map[string]any) {
	for _, p := range c.parts {
		if m, is := p["providerMetadata"].(map[string]any); is {
			if of, is := m["waggle"].(map[string]any); is && of["discarded"] == true {
				continue
			}
		}
		if p["type"] == "step-start" {
			continue
		}
		out = append(out, p)
	}
	return out
}
