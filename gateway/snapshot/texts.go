package snapshot

import (
	"cmp"
	"strconv"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// messageDelta continues a text. The time in which the model thought ends with the first piece.
func messageDelta(t *talk, e event.Event, d fields) {
	if t.goesOn(d); d.Stage == planning {
		return
	}
	known := t.change(itemAnswer, d.RunID, d.MessageID, func(a *item) {
		if len(a.text) == 0 && a.Thought != nil {
			a.Thought = &wire.SnapshotThought{From: a.Thought.From, To: e.Time.UnixMilli()}
		}
		a.text = append(a.text, d.Text...)
	})
	if !known {
		t.add(answer(d, d.MessageID, d.Text, false))
	}
}

// messageCompleted keeps a message without a text if the model has thought before it.
func messageCompleted(t *talk, _ event.Event, d fields) {
	t.goesOn(d)
	if d.Stage == planning {
		d.Content = ""
	}
	known := t.change(itemAnswer, d.RunID, d.MessageID, func(a *item) {
		a.text, a.Done, a.Stop = []byte(d.Content), ptr(true), d.stop()
	})
	if !known && d.Content != "" {
		a := answer(d, d.MessageID, d.Content, true)
		a.Stop = d.stop()
		t.add(a)
	}
}

// stop is why a message is not complete, nil if it is.
func (d fields) stop() *wire.SnapshotStop {
	if _, _, short := event.AnswerNotice(d.StopReason, ""); !short && d.StopReason != event.StopStopped {
		return nil
	}
	return &wire.SnapshotStop{Reason: d.StopReason, Detail: d.StopDetail}
}

func reasoningDelta(t *talk, e event.Event, d fields) {
	t.goesOn(d)
	t.thinks(e, d, func(a *item) {
		a.thought = append(a.thought, d.Text...)
		a.Thought.To = e.Time.UnixMilli()
	})
}

// reasoningCompleted corrects what its deltas have said: some of them may have expired.
func reasoningCompleted(t *talk, e event.Event, d fields) {
	if d.Content != "" {
		t.thinks(e, d, func(a *item) { a.thought = []byte(d.Content) })
	}
}

// thinks changes the reasoning of a message, which begins with it if it has none.
func (t *talk) thinks(e event.Event, d fields, f func(*item)) {
	change := func(a *item) {
		at := e.Time.UnixMilli()
		a.Thought = ptr(*cmp.Or(a.Thought, &wire.SnapshotThought{From: at, To: at}))
		f(a)
	}
	if !t.change(itemAnswer, d.RunID, d.MessageID, change) {
		a := answer(d, d.MessageID, "", false)
		change(&a)
		t.add(a)
	}
}

// requestFailed shows that the model is asked again, until it answers.
func requestFailed(t *talk, e event.Event, d fields) { t.again(e, d, d.Try, d.MaxTries) }

// retryScheduled shows that a piece of work is done again, until it begins.
func retryScheduled(t *talk, e event.Event, d fields) {
	failed, _ := strconv.Atoi(textOf(d.Attempt))
	d.NextModel = ""
	t.again(e, d, failed, d.MaxAttempts)
}

func (t *talk) again(e event.Event, d fields, failed, tries int) {
	t.add(item{SnapshotItem: wire.SnapshotItem{
		Kind: itemRetry, ID: cmp.Or(d.StepID, "model"), Run: d.RunID, Step: d.StepID, Code: ptr(d.Code), Try: failed, Tries: tries,
		Pause: d.RetryAfterMS, At: e.Time.UnixMilli(), Model: d.NextModel,
	}, text: []byte(message(d))})
}

// goesOn forgets that the model was asked again.
func (t *talk) goesOn(d fields) { t.remove(itemRetry, d.RunID, cmp.Or(d.StepID, "model")) }

// aboutAnswers are the codes of notices that the answers have themselves.
var aboutAnswers = map[string]bool{event.AnswerCut: true, event.AnswerWithheld: true, event.AnswerRefused: true, event.AnswerUnsure: true}

// noticed keeps the warnings to people.
func noticed(t *talk, e event.Event, d fields) {
	if d.Level == "warning" && !aboutAnswers[d.Code] {
		t.add(item{SnapshotItem: wire.SnapshotItem{Kind: itemNotice, ID: e.ID, Run: d.RunID, Code: ptr(d.Code)}, text: []byte(message(d))})
	}
}
