package fold

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/content"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Triggers of a request.
const (
	Submit     = "submit-message"
	Regenerate = "regenerate-message"
)

// Limits of a request.
const (
	maxID        = 1024 // bytes
	maxMessageID = 200
	maxParts     = 64
	maxTools     = 64
	maxToolBytes = 64 << 10
	maxOption    = 24 * 60 * 60
)

// Request is the body that useChat posts. Members that it does not name are passed over.
type Request struct {
	ID        string      `json:"id"` // of the chat
	Messages  []UIMessage `json:"messages"`
	Message   *UIMessage  `json:"message"` // in place of Messages: the newest
	Trigger   string      `json:"trigger"`
	MessageID string      `json:"messageId"` // with Regenerate: the assistant's message to replace
	Attempt   string      `json:"attempt"`   // with Regenerate: tells repeats of one request from another request

	Agent          string        `json:"agent"`
	Mode           string        `json:"mode"` // chat, plan
	ConfirmPlan    *bool         `json:"confirmPlan"`
	OnBusy         string        `json:"onBusy"` // reject, enqueue (absent), interrupt
	Budget         *event.Budget `json:"budget"`
	MaxConcurrent  int           `json:"maxConcurrent"`
	TimeoutSeconds int           `json:"timeoutSeconds"`
	ClientID       string        `json:"clientId"`
	Language       string        `json:"language"`
	Tools          []Tool        `json:"tools"`
}

// Tool is one that the page runs.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"` // JSON Schema
}

// UIMessage is a message as a client has it.
type UIMessage struct {
	ID       string   `json:"id"`
	Role     string   `json:"role"`
	Metadata Standing `json:"metadata"`
	Parts    []UIPart `json:"parts"`
}

// Standing is what a client says with the metadata of a message. Those of other applications say nothing.
type Standing struct{ Stretch int }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Standing) UnmarshalJSON(raw []byte) error {
	var d struct {
		Stretch int `json:"stretch"`
	}
	if json.Unmarshal(raw, &d) == nil {
		s.Stretch = d.Stretch
	}
	return nil
}

// UIPart is a part of it.
type UIPart struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	State      string          `json:"state"`
	ToolCallID string          `json:"toolCallId"`
	Output     json.RawMessage `json:"output"`
	ErrorText  string          `json:"errorText"`
	Approval   *Approval       `json:"approval"`
	URL        string          `json:"url"`
	MediaType  string          `json:"mediaType"`
	Filename   string          `json:"filename"`
}

// toolName is what models take as the name of a tool.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Check returns why the request is not valid. The error is a *fault.Fault that names the member.
func (q *Request) Check() error {
	if q.Message != nil {
		q.Messages = append(q.Messages, *q.Message)
	}
	if q.ID == "" || len(q.ID) > maxID {
		return strict.Wrong("id", "a string of 1 to 1024 bytes")
	}
	if len(q.Messages) == 0 {
		return strict.Wrong("messages", "a list with the newest message")
	}
	switch q.Trigger {
	case "", Submit, Regenerate:
	default:
		return strict.Wrong("trigger", Submit+" or "+Regenerate)
	}
	m, field := q.newest()
	switch {
	case !printable(m.ID, maxMessageID):
		return strict.Wrong(field+".id", "a string of 1 to 200 printable bytes")
	case m.Role != RoleUser && m.Role != RoleAssistant:
		return strict.Wrong(field+".role", "user or assistant")
	}
	return q.options()
}

func printable(s string, most int) bool {
	return s != "" && len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

// newest returns the last message, and its place in the request.
func (q *Request) newest() (m *UIMessage, field string) {
	n := len(q.Messages) - 1
	return &q.Messages[n], fmt.Sprintf("messages[%d]", n)
}

// options checks what the request says about the run.
func (q *Request) options() error {
	switch {
	case !slices.Contains([]string{"", modeChat, event.ModePlan}, q.Mode):
		return strict.Wrong("mode", "chat or plan")
	case !slices.Contains([]string{"", event.OnBusyReject, event.OnBusyEnqueue, event.OnBusyInterrupt}, q.OnBusy):
		return strict.Wrong("onBusy", "reject, enqueue or interrupt")
	case q.MaxConcurrent < 0 || q.MaxConcurrent > maxOption:
		return strict.Wrong("maxConcurrent", fmt.Sprintf("a number from 1 to %d", maxOption))
	case q.TimeoutSeconds < 0 || q.TimeoutSeconds > maxOption:
		return strict.Wrong("timeoutSeconds", fmt.Sprintf("a number from 1 to %d", maxOption))
	}
	if b := q.Budget; b != nil && (b.Tokens < 0 || b.CostUSD < 0 || b.ToolCalls < 0 || b.Seconds < 0 || b.AskSeconds < 0) {
		return strict.Wrong("budget", "limits that are not negative")
	}
	return q.tools()
}

// tools checks the tools of the page.
func (q *Request) tools() error {
	size := 0
	for i, t := range q.Tools {
		if !toolName.MatchString(t.Name) {
			return strict.Wrong(fmt.Sprintf("tools[%d].name", i), "1 to 64 letters, digits, _ and -")
		}
		size += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	if len(q.Tools) > maxTools || size > maxToolBytes {
		return strict.Wrong("tools", "at most 64 tools of 64 KiB together")
	}
	return nil
}

// modeChat is the name of the mode whose value in the log is empty.
const modeChat = "chat"

// spec returns the run that the request asks for.
func (q *Request) spec(messageID string) event.RunSpec {
	s := event.RunSpec{
		ConfirmPlan: q.ConfirmPlan, OnBusy: first(q.OnBusy, event.OnBusyEnqueue), MaxConcurrent: q.MaxConcurrent, TimeoutSeconds: q.TimeoutSeconds,
		ClientID: q.ClientID, Budget: q.Budget, Agent: q.Agent, Extra: raw(map[string]extra{extraKey: {MessageID: messageID}}),
	}
	if q.Mode == event.ModePlan {
		s.Mode = event.ModePlan
	}
	for _, t := range q.Tools {
		s.ClientTools = append(s.ClientTools, event.ClientTool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	return s
}

// content reads what the message says. field names it in the error, which is a *fault.Fault.
func (m *UIMessage) content(field string) (c content.Content, err error) {
	if len(m.Parts) > maxParts {
		return c, strict.Wrong(field+".parts", "a list of at most 64 parts")
	}
	var texts []string
	for i, p := range m.Parts {
		switch p.Type {
		case partText:
			texts = append(texts, p.Text)
		case partFile:
			err = p.file(&c, fmt.Sprintf("%s.parts[%d]", field, i))
		}
		if err != nil {
			return c, err
		}
	}
	c.Text = strings.Join(texts, "\n\n")
	if c.Empty() {
		return c, strict.Wrong(field+".parts", "a list with a text that is not only white space, or with a file")
	}
	return c, nil
}

// file adds a file: its address, or its data.
func (p *UIPart) file(c *content.Content, field string) error {
	kind, _, _ := strings.Cut(p.MediaType, "/")
	switch kind {
	case event.FileImage, "audio", "video":
	default:
		kind = event.FileDocument
	}
	data, inline := strings.CutPrefix(p.URL, "data:")
	if !inline {
		if !c.Link(kind, p.URL) {
			return strict.Wrong(field+".url", "an address (http, https) or a data URL in base64")
		}
		return nil
	}
	about, data, _ := strings.Cut(data, ",")
	media, is := strings.CutSuffix(about, ";base64")
	if !is {
		return strict.Wrong(field+".url", "an address (http, https) or a data URL in base64")
	}
	in := content.Inline{Kind: kind, MediaType: first(p.MediaType, media), Name: p.Filename, Data: data}
	return c.Bring(in, content.Fields{MediaType: field + ".mediaType", Data: field + ".url"})
}
