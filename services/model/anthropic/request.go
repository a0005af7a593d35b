package anthropic

import (
	"slices"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

const (
	prefix  = "anthropic"
	baseURL = "https://api.anthropic.com"
	version = "2023-06-01" // of the protocol
	// defaultMaxTokens is the largest limit that every Claude model accepts; the protocol requires a limit.
	defaultMaxTokens = 4096
)

// Names of the options of a request.
const (
	optCache    = "cache_control"
	optPassBack = "thinking of earlier messages"
	optImages   = "images"
)

// options are the parts that a request could do without.
func options(req model.Request, refusal string) []upstream.Option {
	all := []upstream.Option{
		{Name: optCache, Words: []string{"cache_control"}, Named: true},
		{Name: optPassBack, Words: []string{"thinking", "signature"}, Named: true},
	}
	all = append(all, upstream.ToolOptions(req, refusal)...)
	if _, images := req.Blind(); images > 0 {
		all = append(all, upstream.Option{Name: optImages, Words: []string{"image"}, Once: true})
	}
	return all
}

// requestOf returns the request without some options, after what the model said before it paused.
func requestOf(name, provider string, req model.Request, without upstream.Without, before *answer) (request, error) {
	p := request{Model: name, MaxTokens: defaultMaxTokens, Stream: true}
	if req.MaxTokens > 0 {
		p.MaxTokens = req.MaxTokens
	}
	if without[optImages] {
		req, _ = req.Blind()
	}
	if without[optPassBack] {
		provider = ""
	}
	if !upstream.Blank(req.System) {
		p.System = append(p.System, text(req.System))
	}
	for _, msg := range req.Messages {
		if msg.Role == model.RoleSystem {
			if !upstream.Blank(msg.Content) {
				p.System = append(p.System, text(msg.Content))
			}
			continue
		}
		role, blocks := content(msg, provider)
		p.Messages = appendMessage(p.Messages, role, blocks)
	}
	if len(p.Messages) == 0 || p.Messages[0].Role != roleUser { // the protocol wants a user to begin
		p.Messages = slices.Insert(p.Messages, 0, message{Role: roleUser, Content: []block{text(emptyBeginning)}})
	}
	if before != nil {
		blocks, err := before.said()
		if err != nil {
			return p, err
		}
		p.Messages = appendMessage(p.Messages, roleAssistant, blocks)
	}
	p.offer(req, without)
	if !without[optCache] {
		p.cache()
	}
	return p, nil
}

// emptyBeginning stands for the message of a user before a conversation that an assistant begins.
const emptyBeginning = "(The conversation begins with a message of the assistant.)"

// offer adds the tools.
func (p *request) offer(req model.Request, without upstream.Without) {
	for _, t := range req.Tools {
		if !without[upstream.ToolOption(t)] {
			p.Tools = append(p.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
		}
	}
	if !forced(req) {
		return
	}
	p.Tools = append(p.Tools, tool{Name: req.Schema.Name, Description: "Gives the answer.", InputSchema: req.Schema.JSON})
	p.ToolChoice = &toolChoice{Type: "tool", Name: req.Schema.Name}
}

// cache marks the ends of the prefixes that the next request will begin with: the tools, the instructions, and the
// conversation up to its last two messages. Source: Anthropic's documentation, "Prompt caching", which allows four marks.
func (p *request) cache() {
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].CacheControl = ephemeral
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = ephemeral
	}
	for i, marks := len(p.Messages)-1, 0; i >= 0 && marks < 2; i-- {
		if p.Messages[i].Role != roleUser {
			continue
		}
		last := &p.Messages[i].Content[len(p.Messages[i].Content)-1]
		last.CacheControl = ephemeral
		marks++
	}
}

// forced reports whether the request enforces the form of the answer: the model has to call a tool with it, and the
// arguments are the answer. Every Claude model can do that, but only without other tools; beside those the prompt alone asks
// for the form.
func forced(req model.Request) bool { return req.Schema != nil && len(req.Tools) == 0 }

// appendMessage adds blocks to the conversation. It joins neighbours of one role: all results of parallel calls have to be
// in the same message.
func appendMessage(all []message, role string, blocks []block) []message {
	if len(blocks) == 0 {
		return all
	}
	if n := len(all); n > 0 && all[n-1].Role == role {
		all[n-1].Content = append(all[n-1].Content, blocks...)
		return all
	}
	return append(all, message{Role: role, Content: blocks})
}

func images(all []model.Image) (out []block) {
	for _, i := range all {
		out = append(out, block{Type: typeImage, Source: &source{Type: sourceBase64, MediaType: i.MediaType, Data: i.Data}})
	}
	return out
}

func content(m model.Message, provider string) (role string, blocks []block) {
	switch m.Role {
	case model.RoleAssistant:
		return roleAssistant, blocksOf(m, provider)
	case model.RoleTool:
		b := block{Type: typeToolResult, ToolUseID: upstream.LongID(m.ToolCallID), IsError: m.IsError}
		if !upstream.Blank(m.Content) || m.IsError {
			b.Content = []block{text(upstream.OrNothing(m.Content))}
		}
		b.Content = append(b.Content, images(m.Images)...)
		return roleUser, []block{b}
	case model.RoleUser:
		if blocks = images(m.Images); !upstream.Blank(m.Content) {
			blocks = append(blocks, text(m.Content))
		}
		if len(blocks) > 0 {
			return roleUser, blocks
		}
	}
	return roleUser, []block{text(upstream.OrEmpty(""))}
}
