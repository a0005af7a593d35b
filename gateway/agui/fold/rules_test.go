package fold_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

// rules checks a stream of a thread as the clients of AG-UI 1.0 do: what they refuse, and what would leave something open.
type rules struct {
	run     string            // open; empty = none
	steps   []string          // open
	texts   map[string]string // open messages: their subagents
	reasons map[string]bool   // open reasoning
	subs    map[string]string // open subagents: their parents
	used    map[string]bool   // ids of subagents in the run
	calls   map[string]bool   // calls of the run: true = open
	known   map[string]bool   // calls of the run or of the history
	acts    map[string]any    // activities of the run, with their content
	said    map[string]string // texts of messages
}

func newRules() *rules { return &rules{known: map[string]bool{}, said: map[string]string{}} }

func (r *rules) begin(id string) {
	r.run, r.steps = id, nil
	r.texts, r.reasons, r.subs, r.used = map[string]string{}, map[string]bool{}, map[string]string{}, map[string]bool{}
	r.calls, r.acts = map[string]bool{}, map[string]any{}
}

// frame is any frame, read loosely.
type frame struct {
	Type, ThreadID, RunID, StepName, MessageID, Role, Delta, ToolCallID, ToolCallName, SubagentRunID, ActivityType, Message string
	Name, ParentMessageID, ParentSubagentRunID, Code, Content0                                                              string
	Content                                                                                                                 json.RawMessage
	Messages                                                                                                                []wire.Message
	Patch                                                                                                                   []wire.Operation
	Outcome                                                                                                                 *wire.Outcome
}

// take returns why a client would refuse the frame.
func (r *rules) take(f fold.Frame) error {
	var m frame
	if err := json.Unmarshal(f.Data, &m); err != nil {
		return err
	}
	if m.Type == wire.RunStarted {
		if r.run != "" {
			return fmt.Errorf("a run begins within %s", r.run)
		}
		r.begin(m.RunID)
		return nil
	}
	if r.run == "" {
		return fmt.Errorf("%s without a run", m.Type)
	}
	if f.Stretch != r.run {
		return fmt.Errorf("%s of %s within %s", m.Type, f.Stretch, r.run)
	}
	if _, open := r.subs[m.SubagentRunID]; m.SubagentRunID != "" && !open && m.Type != wire.SubagentStarted {
		return fmt.Errorf("%s of the subagent %s, which is not open", m.Type, m.SubagentRunID)
	}
	if err := r.inRun(m); err != nil {
		return fmt.Errorf("%s: %w", f.Data, err)
	}
	if f.Ends != (m.Type == wire.RunFinished || m.Type == wire.RunError) {
		return fmt.Errorf("%s: Ends is %t", m.Type, f.Ends)
	}
	return nil
}

func (r *rules) inRun(m frame) error {
	switch m.Type {
	case wire.RunFinished, wire.RunError:
		return r.end(m)
	case wire.StepStarted, wire.StepFinished:
		return r.step(m)
	case wire.SubagentStarted, wire.SubagentFinished, wire.SubagentError:
		return r.subagent(m)
	case wire.ToolCallStart, wire.ToolCallArgs, wire.ToolCallEnd, wire.ToolCallResult:
		return r.call(m)
	case wire.ActivitySnapshot:
		r.acts[m.MessageID] = true
	case wire.ActivityDelta:
		if r.acts[m.MessageID] == nil {
			return fmt.Errorf("no snapshot before")
		}
		if len(m.Patch) == 0 {
			return fmt.Errorf("an empty patch")
		}
	case wire.MessagesSnapshot:
		for _, one := range m.Messages {
			for _, c := range one.ToolCalls {
				r.known[c.ID] = true
			}
		}
	case wire.Custom:
	default:
		return r.message(m)
	}
	return nil
}

func (r *rules) step(m frame) error {
	i := slices.Index(r.steps, m.StepName)
	if (i >= 0) == (m.Type == wire.StepStarted) {
		return fmt.Errorf("open steps are %v", r.steps)
	}
	if i < 0 {
		r.steps = append(r.steps, m.StepName)
	} else {
		r.steps = slices.Delete(r.steps, i, i+1)
	}
	return nil
}

func (r *rules) subagent(m frame) error {
	if m.Type == wire.SubagentStarted {
		if r.used[m.SubagentRunID] {
			return fmt.Errorf("the subagent was used before")
		}
		if _, open := r.subs[m.ParentSubagentRunID]; m.ParentSubagentRunID != "" && !open {
			return fmt.Errorf("its parent is not open")
		}
		r.used[m.SubagentRunID], r.subs[m.SubagentRunID] = true, ""
		return nil
	}
	for id, owner := range r.texts {
		if owner == m.SubagentRunID {
			return fmt.Errorf("its message %s is open", id)
		}
	}
	delete(r.subs, m.SubagentRunID)
	return nil
}

func (r *rules) call(m frame) error {
	switch m.Type {
	case wire.ToolCallStart:
		if _, before := r.calls[m.ToolCallID]; before {
			return fmt.Errorf("the call was shown before")
		}
		r.calls[m.ToolCallID], r.known[m.ToolCallID] = true, true
	case wire.ToolCallArgs, wire.ToolCallEnd:
		if !r.calls[m.ToolCallID] {
			return fmt.Errorf("the call is not open")
		}
		r.calls[m.ToolCallID] = m.Type == wire.ToolCallArgs
	case wire.ToolCallResult:
		if !r.known[m.ToolCallID] {
			return fmt.Errorf("the call is unknown")
		}
	}
	return nil
}

func (r *rules) message(m frame) error {
	owner, open := r.texts[m.MessageID]
	switch m.Type {
	case wire.TextMessageStart, wire.ReasoningMessageStart:
		if open {
			return fmt.Errorf("it is open")
		}
		if m.Role == "" {
			return fmt.Errorf("no role")
		}
		r.texts[m.MessageID] = m.SubagentRunID
	case wire.TextMessageContent, wire.ReasoningMessageContent, wire.TextMessageEnd, wire.ReasoningMessageEnd:
		if !open || owner != m.SubagentRunID {
			return fmt.Errorf("it is not open, or of %q", owner)
		}
		r.said[m.MessageID] += m.Delta
		if m.Type == wire.TextMessageEnd || m.Type == wire.ReasoningMessageEnd {
			delete(r.texts, m.MessageID)
		} else if m.Delta == "" {
			return fmt.Errorf("an empty piece")
		}
	case wire.ReasoningStart, wire.ReasoningEnd:
		if r.reasons[m.MessageID] == (m.Type == wire.ReasoningStart) {
			return fmt.Errorf("reasoning is open: %t", r.reasons[m.MessageID])
		}
		r.reasons[m.MessageID] = m.Type == wire.ReasoningStart
	default:
		return fmt.Errorf("unknown type")
	}
	return nil
}

// end checks that nothing is open.
func (r *rules) end(m frame) error {
	for id, open := range r.calls {
		if open {
			return fmt.Errorf("the call %s is open", id)
		}
	}
	for id, open := range r.reasons {
		if open {
			return fmt.Errorf("the reasoning %s is open", id)
		}
	}
	if len(r.steps)+len(r.texts)+len(r.subs) > 0 {
		return fmt.Errorf("open: steps %v, messages %v, subagents %v", r.steps, r.texts, r.subs)
	}
	if m.Type == wire.RunFinished && m.RunID != r.run {
		return fmt.Errorf("it ends %s", m.RunID)
	}
	if m.Outcome != nil {
		ids := map[string]bool{}
		for _, i := range m.Outcome.Interrupts {
			if ids[i.ID] {
				return fmt.Errorf("the interrupt %s comes twice", i.ID)
			}
			ids[i.ID] = true
		}
	}
	r.run = ""
	return nil
}
