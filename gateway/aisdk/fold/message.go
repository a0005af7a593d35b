package fold

import (
	"encoding/json"
	"slices"
	"strings"
)

// Roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Types and states of parts.
const (
	partText      = "text"
	partReasoning = "reasoning"
	partStep      = "step-start"
	partFile      = "file"
	partDynamic   = "dynamic-tool"
	partTool      = "tool-" // and the name of a tool of the page

	stateStreaming = "streaming"
	stateDone      = "done"
	stateInput     = "input-available"
	stateAsked     = "approval-requested"
	stateAnswered  = "approval-responded"
	stateOutput    = "output-available"
	stateError     = "output-error"
	stateDenied    = "output-denied"
)

// Message is a UIMessage.
type Message struct {
	ID       string    `json:"id"`
	Role     string    `json:"role"`
	Metadata *Metadata `json:"metadata,omitempty"`
	Parts    []Part    `json:"parts"`

	size     int // bytes of the parts, about
	finished int // the parts before the end of the newest step; 0 while it is open
}

// Part is a part of a message.
type Part struct {
	Type       string          `json:"type"`
	ID         string          `json:"id,omitempty"` // of data and reasoning
	Text       string          `json:"text,omitempty"`
	State      string          `json:"state,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"` // of a dynamic tool
	Title      string          `json:"title,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  string          `json:"errorText,omitempty"`
	Approval   *Approval       `json:"approval,omitempty"`
	URL        string          `json:"url,omitempty"`
	MediaType  string          `json:"mediaType,omitempty"`
	Filename   string          `json:"filename,omitempty"`
	Data       any             `json:"data,omitempty"`
	Provider   *Provider       `json:"providerMetadata,omitempty"`

	chunk string // the id of its chunks, while it is open
	body  []byte // of the text, while it is open
}

// Approval is the question about a tool call, and its answer.
type Approval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// clone returns a copy that changes alone.
func (m *Message) clone() *Message {
	if m == nil {
		return nil
	}
	c := *m
	c.Parts = slices.Clone(m.Parts)
	for i := range c.Parts {
		c.Parts[i].body = slices.Clone(c.Parts[i].body)
	}
	return &c
}

// apply changes the message as a client does that gets the chunk.
func (m *Message) apply(c Chunk) {
	m.size += len(c.Delta) + len(c.Input) + len(c.Output) + partSize
	switch c.Type {
	case Start, Finish, MessageMetadata:
		m.describe(c.Metadata)
	case StartStep:
		m.Parts, m.finished = append(m.Parts, Part{Type: partStep}), 0
	case FinishStep:
		m.finished = len(m.Parts)
	case ResetStep:
		m.Parts = m.Parts[:m.step()]
	case TextStart, ReasoningStart:
		m.begin(c)
	case TextDelta, ReasoningDelta:
		p := m.open(c.ID)
		p.body = append(p.body, c.Delta...)
	case TextEnd, ReasoningEnd:
		p := m.open(c.ID)
		p.Text, p.State, p.chunk, p.body = string(p.body), stateDone, "", nil
		if c.Provider != nil {
			p.Provider = c.Provider
		}
	case File:
		m.Parts = append(m.Parts, Part{Type: partFile, URL: c.URL, MediaType: c.MediaType})
	case ToolInputAvailable, ToolApprovalRequest, ToolOutputAvailable, ToolOutputError, ToolOutputDenied:
		m.call(c)
	default:
		m.data(c)
	}
}

// partSize is about what a part takes besides its texts.
const partSize = 128

// describe merges metadata.
func (m *Message) describe(more *Metadata) {
	if more == nil {
		return
	}
	if m.Metadata == nil {
		m.Metadata = &Metadata{}
	}
	d := *m.Metadata
	d.CreatedAt, d.Outcome, d.StopReason = first(more.CreatedAt, d.CreatedAt), first(more.Outcome, d.Outcome), first(more.StopReason, d.StopReason)
	if more.Usage != nil {
		d.Usage = more.Usage
	}
	if more.Error != nil {
		d.Error = more.Error
	}
	d.Stretch = max(d.Stretch, more.Stretch)
	m.Metadata = &d
}

// step returns where the parts of the newest step begin.
func (m *Message) step() int {
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if m.Parts[i].Type == partStep {
			return i + 1
		}
	}
	return 0
}

// firstStep returns the index of the part with which the first step begins.
func (m *Message) firstStep() int {
	return slices.IndexFunc(m.Parts, func(p Part) bool { return p.Type == partStep })
}

// begin begins a text or reasoning.
func (m *Message) begin(c Chunk) {
	p := Part{Type: partText, State: stateStreaming, Provider: c.Provider, chunk: c.ID}
	if c.Type == ReasoningStart {
		p.Type, p.ID = partReasoning, c.ID
	}
	m.Parts = append(m.Parts, p)
}

// opened returns the index of the open text or reasoning with the id, -1 without one.
func (m *Message) opened(id string) int {
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if m.Parts[i].chunk == id && m.Parts[i].State == stateStreaming {
			return i
		}
	}
	return -1
}

// open returns the open text or reasoning with the id, which exists.
func (m *Message) open(id string) *Part { return &m.Parts[m.opened(id)] }

// tool returns the part of a tool call, nil without one.
func (m *Message) tool(callID string) *Part {
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if m.Parts[i].ToolCallID == callID {
			return &m.Parts[i]
		}
	}
	return nil
}

// call changes a tool call.
func (m *Message) call(c Chunk) {
	p := m.tool(c.ToolCallID)
	if p == nil {
		n := Part{Type: partTool + c.ToolName, ToolCallID: c.ToolCallID, Title: c.Title}
		if c.Dynamic {
			n.Type, n.ToolName = partDynamic, c.ToolName
		}
		m.Parts = append(m.Parts, n)
		p = &m.Parts[len(m.Parts)-1]
	}
	switch c.Type {
	case ToolInputAvailable:
		p.State, p.Input = stateInput, c.Input
	case ToolApprovalRequest:
		p.State, p.Approval = stateAsked, &Approval{ID: c.ApprovalID}
	case ToolOutputAvailable:
		p.State, p.Output, p.ErrorText = stateOutput, c.Output, ""
	case ToolOutputError:
		p.State, p.ErrorText = stateError, c.ErrorText
	case ToolOutputDenied:
		p.State = stateDenied
	}
}

// data adds or replaces data. Other chunks say nothing that a message keeps.
func (m *Message) data(c Chunk) {
	if c.Transient || !strings.HasPrefix(c.Type, "data-") {
		return
	}
	for i := range m.Parts {
		if m.Parts[i].Type == c.Type && m.Parts[i].ID == c.ID {
			m.Parts[i].Data = c.Data
			return
		}
	}
	m.Parts = append(m.Parts, Part{Type: c.Type, ID: c.ID, Data: c.Data})
}

// replay returns the chunks that make the message, with its open texts open.
func (m *Message) replay() []Chunk {
	out := []Chunk{{Type: Start, MessageID: m.ID, Metadata: m.Metadata}}
	newest := m.step() - 1
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Type != partStep:
			out = append(out, p.replay()...)
		case i > m.firstStep():
			out = append(out, Chunk{Type: FinishStep}, Chunk{Type: StartStep})
		default:
			out = append(out, Chunk{Type: StartStep})
		}
		if i+1 == m.finished && newest >= 0 {
			out = append(out, Chunk{Type: FinishStep})
		}
	}
	return out
}

// replay returns the chunks that make the part.
func (p *Part) replay() []Chunk {
	switch {
	case p.Provider != nil && p.Provider.Waggle.Discarded:
		return nil
	case p.Type == partText:
		return p.told(TextStart, TextDelta, TextEnd, p.chunk)
	case p.Type == partReasoning:
		return p.told(ReasoningStart, ReasoningDelta, ReasoningEnd, p.ID)
	case p.Type == partFile:
		return []Chunk{{Type: File, URL: p.URL, MediaType: p.MediaType}}
	case p.ToolCallID != "":
		return p.called()
	}
	return []Chunk{{Type: p.Type, ID: p.ID, Data: p.Data}}
}

// told returns the chunks of a text.
func (p *Part) told(start, delta, end, id string) []Chunk {
	if p.State == stateStreaming {
		return []Chunk{{Type: start, ID: id, Provider: p.Provider}, {Type: delta, ID: id, Delta: string(p.body)}}
	}
	if id == "" {
		id = "text"
	}
	return []Chunk{{Type: start, ID: id, Provider: p.Provider}, {Type: delta, ID: id, Delta: p.Text}, {Type: end, ID: id, Provider: p.Provider}}
}

// called returns the chunks of a tool call.
func (p *Part) called() []Chunk {
	name, dynamic := p.ToolName, p.Type == partDynamic
	if !dynamic {
		name = strings.TrimPrefix(p.Type, partTool)
	}
	out := []Chunk{{Type: ToolInputAvailable, ToolCallID: p.ToolCallID, ToolName: name, Dynamic: dynamic, Title: p.Title, Input: p.Input}}
	if p.Approval != nil {
		out = append(out, Chunk{Type: ToolApprovalRequest, ToolCallID: p.ToolCallID, ApprovalID: p.Approval.ID})
	}
	switch p.State {
	case stateInput:
		if p.Approval != nil { // it was allowed, and is at work
			out = append(out, out[0])
		}
	case stateOutput:
		out = append(out, Chunk{Type: ToolOutputAvailable, ToolCallID: p.ToolCallID, Output: p.Output})
	case stateError:
		out = append(out, Chunk{Type: ToolOutputError, ToolCallID: p.ToolCallID, ErrorText: p.ErrorText})
	case stateDenied:
		out = append(out, Chunk{Type: ToolOutputDenied, ToolCallID: p.ToolCallID})
	}
	return out
}

// shown returns the message as a page is given it: open texts have what was said so far, and discarded ones are left out.
func (m *Message) shown() Message {
	c := *m
	c.Parts = make([]Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		if p.Provider != nil && p.Provider.Waggle.Discarded {
			continue
		}
		if p.State == stateStreaming {
			p.Text = string(p.body)
		}
		c.Parts = append(c.Parts, p)
	}
	return c
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
