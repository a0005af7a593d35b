package chat

import (
	"io"

	"github.com/waggle-dev/waggle/cmd/waggle/markdown"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

// Prose shows texts of a model: at a terminal as Markdown, block by block with the one that is being written below them, and
// elsewhere as they come.
type Prose struct {
	screen   *terminal.Screen
	stripper terminal.Stripper
	blocks   *markdown.Writer // nil: as they come
}

// NewProse returns what shows texts on the screen.
func NewProse(screen *terminal.Screen) *Prose {
	p := &Prose{screen: screen}
	if screen.Styled() {
		p.blocks = &markdown.Writer{Out: screen, Width: screen.Width}
	}
	return p
}

// Say shows the next piece of a text.
func (p *Prose) Say(piece string) {
	piece = p.stripper.Strip(piece)
	if p.blocks == nil {
		_, _ = io.WriteString(p.screen, piece)
		return
	}
	p.blocks.Write(piece)
	p.screen.Status("") // the growing text shows progress
	p.screen.Panel(terminal.Rows(p.blocks.Rest(), p.screen.Width()-1))
}

// Whole shows a text that has not been shown in pieces.
func (p *Prose) Whole(text string) {
	p.screen.FreshLine()
	p.Say(text)
}

// End ends the text: the next piece begins another one.
func (p *Prose) End() {
	if p.blocks != nil {
		p.screen.Panel(nil)
		p.blocks.End()
	}
	p.screen.FreshLine()
	p.stripper = terminal.Stripper{}
}
