package planchat

import (
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/chat"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

const (
	// lineWidth fits remarks on common terminals without wrapping.
	lineWidth = 100
	// cellWidth leaves room for the other columns of a plan.
	cellWidth = 60
)

// view shows the frames of one run.
type view struct {
	screen   *terminal.Screen
	stream   bool // show the answer as it is written
	plan     draft
	message  string // the message whose text is being written
	written  strings.Builder
	prose    *chat.Prose
	thoughts chat.Thoughts
}

// show shows a frame of the run.
func (v *view) show(f sdk.Frame) {
	if f.Event != myagent.AgentThinking {
		v.thoughts.Fold(v.screen)
	}
	switch f.Event {
	case myagent.AgentThinking:
		v.thinks(f)
	case myagent.ErrorRetryAttempt:
		v.endText()
		v.remark(terminal.Yellow, orElse(f.Show, "trying again"))
	case myagent.PlanStart:
		v.screen.Status("planning")
	case myagent.PlanCompleted:
		v.planned(f)
	case myagent.PlanCoercionError:
		v.screen.Note(terminal.Yellow, "the plan cannot be used: "+terminal.Line(sdk.As[myagent.CoercionMeta](f.Metadata).ErrorMessage, lineWidth))
	case myagent.PlanCancelled:
		v.screen.Note(terminal.Yellow, "plan cancelled")
	case myagent.AggregateStart:
		v.screen.Status("putting the results together")
	case myagent.AgentToolCall:
		d := sdk.As[myagent.ToolCallMeta](f.Metadata)
		v.remark(terminal.Cyan, "  → "+d.ToolName+" "+string(d.ToolArgs))
	case myagent.AgentToolResult:
		d := sdk.As[myagent.ToolResultMeta](f.Metadata)
		v.remark(terminal.Dim, "  ← "+orElse(d.Result.Output, d.Result.Error))
	case myagent.AgentPartialAnswer:
		v.piece(f)
	case myagent.AgentFinalAnswer:
		v.answer(f)
	case myagent.AgentError, myagent.AgentTimeout, myagent.ErrorTimeout, myagent.ErrorExecution:
		v.warn(errorText(f))
	case myagent.AgentInterrupted:
		v.endText()
		v.screen.Note(terminal.Yellow, "stopped")
	default:
		v.task(f)
	}
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

func (v *view) remark(style terminal.Style, text string) {
	v.screen.Remark(style, terminal.Line(text, lineWidth))
}

func (v *view) warn(text string) {
	v.endText()
	v.screen.Warn("✗ " + text)
}

func (v *view) planned(f sdk.Frame) {
	v.plan = draft{tasks: sdk.As[myagent.Tasks](f.Content).Tasks}
	if s := sdk.As[myagent.PlanCompletedMeta](f.Metadata).Summary; s != "" {
		v.screen.Note(terminal.Bold, "Plan: "+terminal.Line(s, lineWidth))
	}
	v.table()
}

func (v *view) table() {
	for i, line := range terminal.Table(v.plan.table(), cellWidth) {
		style := terminal.Plain
		if i == 0 {
			style = terminal.Dim
		}
		v.screen.Note(style, "  "+line)
	}
}

// task shows how the tasks get on.
func (v *view) task(f sdk.Frame) {
	switch f.Event {
	case myagent.SolverStart:
		task := sdk.As[myagent.SolverStartContent](f.Content).Task
		if v.plan.number(task.ID) == 0 {
			v.plan.tasks = append(v.plan.tasks, task)
		}
		v.progress(terminal.Blue, "▸", task.ID, "")
	case myagent.SolverCompleted:
		d := sdk.As[myagent.SolverCompletedMeta](f.Metadata)
		v.progress(terminal.Green, "✓", d.TaskID, duration(d.ExecutionMS))
	case myagent.SolverStepFailed:
		v.progress(terminal.Red, "✗", f.Meta().TaskID, sdk.As[myagent.StepFailedContent](f.Content).ErrorMessage)
	case myagent.SolverCancelled:
		v.progress(terminal.Yellow, "–", sdk.As[myagent.TaskRef](f.Content).TaskID,
			"cancelled: "+sdk.As[myagent.SolverCancelledMeta](f.Metadata).Reason)
	case myagent.SolverRestarted:
		d := sdk.As[myagent.SolverRestartedMeta](f.Metadata)
		v.progress(terminal.Yellow, "↻", sdk.As[myagent.SolverRestartedContent](f.Content).TaskID,
			fmt.Sprintf("attempt %d of %d", d.Attempt, d.MaxAttempts))
	case myagent.SystemNotice:
		v.notice(f)
	}
}

func (v *view) notice(f sdk.Frame) {
	switch m := f.Meta(); {
	case m.Action == myagent.ActionTextDiscarded && m.Stage == stageAggregation:
		v.discarded(sdk.As[myagent.NoticeMeta](f.Metadata).Reason)
	case aboutWorkers(m):
		v.endText()
		v.screen.Warn(terminal.Line(f.Show, lineWidth))
	}
}

// aboutWorkers tells notices that say whether a worker is available. They name no run.
func aboutWorkers(m sdk.Meta) bool {
	return m.Action == myagent.ActionNoWorker || m.Action == myagent.ActionWorkerBack
}

func duration(ms int64) string {
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}

func (v *view) progress(style terminal.Style, mark, id, text string) {
	n := v.plan.number(id)
	title := id
	if n > 0 {
		title = v.plan.tasks[n-1].Title
	}
	if text != "" {
		text = "  " + text
	}
	v.screen.Note(style, terminal.Line(fmt.Sprintf("%s %d %s%s", mark, n, terminal.Line(title, cellWidth), text), lineWidth))
	v.screen.Status("solving")
}

// stageAggregation is the stage whose text is the answer.
const stageAggregation = "aggregation"

func (v *view) piece(f sdk.Frame) {
	d := sdk.As[myagent.PartialAnswerMeta](f.Metadata)
	if !v.stream || d.Stage != stageAggregation || d.Final {
		return
	}
	if d.MessageID != v.message {
		v.endText()
		v.message = d.MessageID
	}
	v.written.WriteString(f.Text())
	v.prose.Say(f.Text())
}

// endText closes the current text; further text belongs to another message.
func (v *view) endText() {
	v.prose.End()
	v.message = ""
	v.written.Reset()
}

func (v *view) discarded(reason string) {
	v.thoughts.Drop()
	if v.written.Len() > 0 {
		v.endText()
		v.screen.Remark(terminal.Yellow, chat.Discarded(reason))
	}
}

// thinks shows a piece of what the model thinks, or all of it.
func (v *view) thinks(f sdk.Frame) {
	if d := sdk.As[myagent.ThinkingMeta](f.Metadata); d.Reasoning && d.TotalLength == nil {
		v.thoughts.Piece(v.screen, d.MessageID, f.Text())
	}
}

// answer shows the answer, unless its deltas were just shown, and the usage.
func (v *view) answer(f sdk.Frame) {
	if text := f.Text(); v.written.String() != text || text == "" {
		v.prose.Whole(text)
	}
	v.endText()
	d := sdk.As[myagent.FinalAnswerMeta](f.Metadata)
	chat.Incomplete(v.screen, d.StopReason)
	v.remark(terminal.Dim, bill(d))
}

// bill returns the known usage of an answer.
func bill(d myagent.FinalAnswerMeta) string {
	parts := []string{d.Status}
	if d.GenerationMS != nil {
		parts = append(parts, duration(*d.GenerationMS))
	}
	if d.TotalTokens != nil {
		parts = append(parts, fmt.Sprintf("%d tokens", *d.TotalTokens)+cached(d.TokensUsed))
	}
	if d.CostUSD != nil {
		parts = append(parts, fmt.Sprintf("$%.4f", *d.CostUSD))
	}
	return strings.Join(parts, ", ")
}

// cached says how many of the tokens came from the provider's cache.
func cached(t *myagent.Tokens) string {
	if t == nil || t.Cached == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d cached)", t.Cached)
}

// errorText returns the text of a frame that reports an error, on one line.
func errorText(f sdk.Frame) string {
	e := f.Err()
	e.Message, e.Code = terminal.Line(e.Message, 2000), terminal.Line(e.Code, 40)
	return e.Error()
}
