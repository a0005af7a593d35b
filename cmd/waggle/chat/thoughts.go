package chat

import (
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// lineWidth keeps a remark on one line of a usual terminal.
const lineWidth = 100

// Thoughts show the reasoning of a model, which never belongs to its answer: while it thinks in the status, then folded into one
// dim line.
type Thoughts struct {
	message string // whose reasoning it is
	text    strings.Builder
	folded  bool // the line has been shown
}

// Piece takes the next piece of a reasoning.
func (t *Thoughts) Piece(screen *terminal.Screen, message, text string) {
	t.of(message)
	t.text.WriteString(text)
	screen.Status("thinking: " + tail(terminal.Line(t.text.String(), maxThought)))
}

// Whole takes a reasoning that is whole, and folds it.
func (t *Thoughts) Whole(screen *terminal.Screen, message, text string) {
	if t.of(message); !t.folded {
		t.text.Reset()
		t.text.WriteString(text)
		t.Fold(screen)
	}
}

// Fold shows the reasoning so far in one line. The model continues with something else.
func (t *Thoughts) Fold(screen *terminal.Screen) {
	if t.folded || t.text.Len() == 0 {
		return
	}
	t.folded = true
	screen.FreshLine()
	screen.Remark(terminal.Dim, "✻ "+terminal.Line(t.text.String(), lineWidth))
}

// Drop forgets a reasoning that does not count.
func (t *Thoughts) Drop() { *t = Thoughts{} }

func (t *Thoughts) of(message string) {
	if message != t.message {
		*t = Thoughts{message: message}
	}
}

// maxThought bounds the reasoning that the status is made of, in characters.
const maxThought = 1 << 20

// tail returns the end of a text that fits beside the status.
func tail(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return "…" + string(runes[len(runes)-most:])
}

// Discarded says why a text that was shown does not count.
func Discarded(reason string) string {
	switch reason {
	case "worker_lost":
		return "the worker was lost; another one begins this text again"
	case "": // the run may have ended, for instance by Ctrl-C
		return "this text does not count any more"
	}
	return "this text does not count: " + terminal.Line(reason, lineWidth)
}

// Incomplete warns of an answer that is not complete.
func Incomplete(screen *terminal.Screen, stopReason string) {
	if _, text, short := event.AnswerNotice(stopReason, "unknown"); short {
		screen.Warn(text)
	}
}
