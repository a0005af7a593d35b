package openai

import (
	"bytes"
	"encoding/json"

	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// maxCalls bounds the tool calls of one answer. OpenAI offers models 128 tools.
const maxCalls = 128

// maxArguments bounds the arguments of one answer's calls: far above any model's longest output.
const maxArguments = 8 << 20

// part is a tool call whose arguments are still arriving.
type part struct {
	index     int64
	id, name  string
	arguments []byte
	last      []byte // the newest piece of the arguments
	pieces    int
	again     bool // begun by a name alone at the index of a whole call of the same name, which may be that call once more
	extra     json.RawMessage
}

// parts are the tool calls of one answer. Servers give ids and indexes to their pieces in many ways, so that neither alone
// tells which call a piece belongs to.
type parts struct {
	all   []*part
	index map[int64]*part // where an index was announced for a call that another index has, too
	bytes int
}

// add adds a piece of a tool call.
func (c *parts) add(d toolCallDelta) error {
	id, name, args := string(d.ID), string(d.Function.Name), []byte(d.Function.Arguments)
	p, known := c.find(d.Index.N, id, name, args)
	if p == nil {
		p = &part{index: d.Index.N, id: id, again: known}
		c.all = append(c.all, p)
		delete(c.index, d.Index.N)
	}
	if id != "" {
		p.id = id
	}
	if p.name == "" {
		p.name = name
	}
	if len(d.ExtraContent) > 0 && string(d.ExtraContent) != "null" {
		p.extra = d.ExtraContent
	}
	if c.bytes += len(args); len(c.all) > maxCalls || c.bytes > maxArguments {
		return upstream.BadReply("%d tool calls with %d bytes of arguments", len(c.all), c.bytes)
	}
	p.extend(args, id != "" || name != "")
	return nil
}

// extend adds a piece of the arguments. A piece that says the whole arguments once more adds nothing.
func (p *part) extend(args []byte, announced bool) {
	if len(args) == 0 {
		return
	}
	if announced && upstream.Whole(args) && len(p.arguments) > 0 && (bytes.Equal(args, p.arguments) || !upstream.Whole(p.arguments)) {
		p.arguments = p.arguments[:0]
	}
	p.arguments = append(p.arguments, args...)
	p.last, p.pieces = args, p.pieces+1
}

// find returns the call that a piece belongs to; nil if it begins one. Then again says that it may be the call before once more.
func (c *parts) find(index int64, id, name string, args []byte) (p *part, again bool) {
	if p := c.announced(index, id, name, args); p != nil {
		return p, false
	}
	if p = c.newest(index); p == nil {
		return nil, false
	}
	switch {
	case id != "" && p.id != "" && id != p.id:
		return p.renamed(name), false
	case id == "" && name != "" && json.Valid(p.arguments):
		return p.repeated(name, args)
	}
	return p, false
}

// renamed returns the call if another id for it means that its id has changed before it had any arguments.
func (p *part) renamed(name string) *part {
	if len(p.arguments) > 0 || name != "" && name != p.name {
		return nil
	}
	return p
}

// repeated returns the whole call if a piece without an id says it once more. Then again says that the piece may do so with
// what follows.
func (p *part) repeated(name string, args []byte) (same *part, again bool) {
	if p.id != "" && name == p.name && bytes.Equal(args, p.arguments) {
		return p, false
	}
	return nil, len(args) == 0 && name == p.name
}

// announced returns the call with the id at another index, if the piece is about that call.
func (c *parts) announced(index int64, id, name string, args []byte) *part {
	if id == "" {
		return nil
	}
	for _, p := range c.all {
		if p.id == id && p.index != index && p.same(name, args) {
			c.alias(index, p)
			return p
		}
	}
	return nil
}

// same reports whether a piece at another index, with the id of p, is about p: some servers give all calls one id.
func (p *part) same(name string, args []byte) bool {
	if name != "" && p.name != "" && name != p.name {
		return false
	}
	return len(p.arguments) == 0 || len(args) == 0 && name == "" || bytes.Equal(args, p.arguments) || !upstream.Whole(p.arguments)
}

func (c *parts) alias(index int64, p *part) {
	if c.index == nil {
		c.index = map[int64]*part{}
	}
	c.index[index] = p
}

// newest returns the newest call with an index.
func (c *parts) newest(index int64) *part {
	if p := c.index[index]; p != nil {
		return p
	}
	for i := len(c.all) - 1; i >= 0; i-- {
		if c.all[i].index == index {
			return c.all[i]
		}
	}
	return nil
}

// end completes the calls: it drops those that were announced once more, and takes the last piece of arguments whose pieces
// each repeat the ones before.
func (c *parts) end() error {
	whole := c.all[:0]
	for _, p := range c.all {
		if p.again && len(p.arguments) == 0 {
			continue
		}
		if p.name == "" {
			return upstream.BadReply("tool call %d has no name", p.index)
		}
		p.arguments = []byte(upstream.Join(p.arguments))
		if p.pieces > 1 && !json.Valid(p.arguments) && upstream.Whole(p.last) {
			p.arguments = p.last
		}
		whole = append(whole, p)
	}
	c.all = whole
	return nil
}

// open reports whether the last call has no whole arguments.
func (c *parts) open() bool {
	return len(c.all) > 0 && !upstream.Whole(c.all[len(c.all)-1].arguments)
}
