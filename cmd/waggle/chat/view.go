package chat

import (
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/orbit"
)

// View renders frames for a person. It first strips terminal control sequences from everything
// that the server sends.
type View struct {
	screen *terminal.Screen
	stream bool // show text while it is written; otherwise only whole answers

	message  string // the message that is being written
	written  strings.Builder
	prose    *Prose
	thoughts Thoughts
}

// NewView returns a view on the screen. With stream it shows text as it comes.
func NewView(screen *terminal.Screen, stream bool) *View {
	return &View{screen: screen, stream: stream, prose: NewProse(screen)}
}

// Show shows one frame.
func (v *View) Show(f sdk.Frame) {
	switch f.Type {
	case orbit.AgentStart:
		v.screen.Status("waiting for an agent")
	case orbit.AgentReady:
		v.screen.Status("")
	case orbit.AgentThinking:
		v.thinking(f)
	case orbit.ToolCalled:
		v.toolCalled(f)
	case orbit.ToolResult:
		v.toolResult(f)
	case orbit.AgentDelta:
		v.delta(f)
	case orbit.ThinkingDelta:
		d := sdk.As[orbit.DeltaData](f)
		v.thoughts.Piece(v.screen, d.MessageID, d.Text)
	case orbit.DeltaDiscarded:
		v.discarded(sdk.As[orbit.DiscardedData](f).Reason)
	case orbit.AgentResponse:
		v.response(f)
	case orbit.Error:
		v.failure(f)
	}
}

// thinking also says whether a worker is available, and why the model is asked again.
func (v *View) thinking(f sdk.Frame) {
	switch d := sdk.As[orbit.ThoughtData](f); {
	case d.Question != nil:
		v.question(d)
	case d.MessageID != "":
		v.thoughts.Whole(v.screen, d.MessageID, d.Message)
	case d.Code == "":
		v.screen.Status("thinking")
	case d.Code == event.NoWorker:
		v.endText()
		v.screen.Warn(terminal.Line(d.Message, lineWidth))
		v.screen.Status("waiting for a worker")
	case answerCodes[d.Code]: // the answer says it itself
	default:
		v.endText()
		v.screen.Remark(terminal.Dim, terminal.Line(d.Message, lineWidth))
		v.screen.Status("thinking")
	}
}

// answerCodes are those of notices about an answer that is not complete.
var answerCodes = map[string]bool{event.AnswerCut: true, event.AnswerWithheld: true, event.AnswerRefused: true, event.AnswerUnsure: true}

// MayCall is the question whether a tool may be called. The arguments are shown whole: the person decides about them.
func MayCall(tool string, arguments []byte) string {
	return "May " + terminal.Line(tool, lineWidth) + " be called with " + terminal.Strip(string(arguments)) + "?"
}

// question shows what the run waits for.
func (v *View) question(d orbit.ThoughtData) {
	v.endText()
	text := terminal.Strip(d.Message)
	if d.Question.Tool != "" {
		text = MayCall(d.Question.Tool, d.Question.Arguments)
	}
	v.screen.Warn(text)
	v.screen.Status("waiting for an answer")
}

func (v *View) toolCalled(f sdk.Frame) {
	v.endText()
	d := sdk.As[orbit.ToolCalledData](f)
	v.screen.Remark(terminal.Cyan, "→ "+terminal.Line(d.ToolName+" "+string(d.Arguments), lineWidth))
	v.screen.Status("running " + terminal.Line(d.ToolName, lineWidth))
}

func (v *View) toolResult(f sdk.Frame) {
	d := sdk.As[orbit.ToolResultData](f)
	v.screen.Remark(terminal.Dim, "← "+terminal.Line(d.Result, lineWidth))
	v.screen.Status("thinking")
}

func (v *View) delta(f sdk.Frame) {
	if !v.stream {
		return
	}
	d := sdk.As[orbit.DeltaData](f)
	if d.MessageID != v.message {
		v.endText()
		v.message = d.MessageID
	}
	v.thoughts.Fold(v.screen)
	v.written.WriteString(d.Text)
	v.prose.Say(d.Text)
}

// endText closes the current text; further text belongs to another message.
func (v *View) endText() {
	v.prose.End()
	v.message = ""
	v.written.Reset()
}

func (v *View) discarded(reason string) {
	shown := v.written.Len() > 0
	v.thoughts.Drop()
	v.endText()
	if shown {
		v.screen.Remark(terminal.Yellow, Discarded(reason))
	}
	v.screen.Status("thinking")
}

// response shows the answer, unless it has just been shown piece by piece.
func (v *View) response(f sdk.Frame) {
	d := sdk.As[orbit.ResponseData](f)
	if v.written.String() != d.Message || d.Message == "" {
		v.prose.Whole(d.Message)
	}
	v.endText()
	Incomplete(v.screen, d.StopReason)
	v.end()
}

func (v *View) failure(f sdk.Frame) {
	v.endText()
	v.screen.Warn("✗ " + ErrorText(f))
	v.end()
}

func (v *View) end() {
	v.endText()
	v.screen.Status("")
}

// ErrorText returns the text of an error frame on one line.
func ErrorText(f sdk.Frame) string {
	d := sdk.As[orbit.ErrorData](f)
	text := terminal.Line(d.Message, 2000)
	if d.Code != "" {
		text += " [" + terminal.Line(d.Code, 40) + "]"
	}
	return text
}
