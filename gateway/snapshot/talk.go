package snapshot

import (
	"maps"
	"slices"
	"time"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// item is an item with a text that grows. Ids count within a run: some models number their calls anew for each answer.
type item struct {
	wire.SnapshotItem
	text, thought []byte
}

type itemKey struct{ kind, run, id string }

func (i *item) key() itemKey { return itemKey{i.Kind, i.Run, i.ID} }

// talk folds a conversation.
type talk struct {
	items     []item
	at        map[itemKey]int
	runs      map[string][]int // places of their items
	questions []question
	active    []string
	clocks    bool              // questions show when they expire
	ends      map[string]string // by question
}

type question struct {
	id, run string
	wire.SnapshotQuestion
}

func newTalk(clocks bool) *talk {
	return &talk{at: map[itemKey]int{}, runs: map[string][]int{}, clocks: clocks, ends: map[string]string{}}
}

func (t *talk) fork() *talk {
	out := *t
	out.items = slices.Clone(t.items)
	for _, list := range [][]item{t.items, out.items} {
		for i := range list {
			list[i].text, list[i].thought = slices.Clip(list[i].text), slices.Clip(list[i].thought) // each appends for itself
		}
	}
	out.at, out.ends, out.runs = maps.Clone(t.at), maps.Clone(t.ends), make(map[string][]int, len(t.runs))
	for run, places := range t.runs {
		out.runs[run] = slices.Clone(places)
	}
	out.questions, out.active = slices.Clone(t.questions), slices.Clone(t.active)
	return &out
}

func (t *talk) snapshot() wire.SnapshotTalk {
	out := wire.SnapshotTalk{Items: make([]wire.SnapshotItem, 0, len(t.items)), Questions: []wire.SnapshotQuestion{}, Active: filled(t.active)}
	for _, i := range t.items {
		if i.Kind != itemPlan {
			text := string(i.text)
			i.Text, i.Reasoning = &text, string(i.thought)
		}
		out.Items = append(out.Items, i.SnapshotItem)
	}
	for _, q := range t.questions {
		q.Ends = t.ends[q.id]
		out.Questions = append(out.Questions, q.SnapshotQuestion)
	}
	return out
}

func (t *talk) take(e event.Event, d fields) {
	t.ask(e, d)
	if f := talkTakers[e.Type]; f != nil {
		f(t, e, d)
	}
}

// add puts an item at the end, or in the place of the one with its key.
func (t *talk) add(i item) {
	if n, is := t.at[i.key()]; is {
		t.items[n] = i
		return
	}
	t.place(len(t.items), i)
	t.items = append(t.items, i)
}

func (t *talk) place(n int, i item) {
	t.at[i.key()] = n
	t.runs[i.Run] = append(t.runs[i.Run], n)
}

func (t *talk) change(kind, run, id string, f func(*item)) bool {
	n, is := t.at[itemKey{kind, run, id}]
	if is {
		f(&t.items[n])
	}
	return is
}

func (t *talk) remove(kind, run, id string) {
	n, is := t.at[itemKey{kind, run, id}]
	if !is {
		return
	}
	t.items = slices.Delete(t.items, n, n+1)
	clear(t.at)
	clear(t.runs)
	for n, i := range t.items {
		t.place(n, i)
	}
}

// of calls f with the items of a kind in a run.
func (t *talk) of(run, kind string, f func(*item)) {
	for _, n := range t.runs[run] {
		if t.items[n].Kind == kind {
			f(&t.items[n])
		}
	}
}

func (t *talk) step(run, id, status, text string, says bool) {
	t.of(run, itemPlan, func(p *item) {
		n := slices.IndexFunc(p.Steps, func(s wire.SnapshotStep) bool { return s.ID == id })
		if n < 0 {
			return
		}
		p.Steps = slices.Clone(p.Steps)
		for i := range p.Steps {
			if p.Steps[i].ID == id {
				p.Steps[i].Status = status
				if says {
					p.Steps[i].Text = text
				}
			}
		}
		p.Status = stateRunning
	})
}

func (t *talk) end(run string, cancelled bool) {
	t.active = slices.DeleteFunc(t.active, func(r string) bool { return r == run })
	t.of(run, itemPlan, func(p *item) {
		if p.Status = "done"; cancelled {
			p.drop()
		}
	})
	t.of(run, itemAnswer, func(a *item) { a.Done = ptr(true) })
	var retries []string
	t.of(run, itemRetry, func(r *item) { retries = append(retries, r.ID) })
	for _, id := range retries {
		t.remove(itemRetry, run, id)
	}
}

// drop has a plan not be carried out any more.
func (i *item) drop() {
	i.Status, i.Steps = stateCancelled, slices.Clone(i.Steps)
	for n := range i.Steps {
		if s := &i.Steps[n]; s.Status == stateWaiting || s.Status == stateRunning {
			s.Status = stateCancelled
		}
	}
}

func (t *talk) says(run, text string) (found bool) {
	t.of(run, itemAnswer, func(a *item) { found = found || a.Step == "" && string(a.text) == text })
	return found
}

// ask keeps the open questions.
func (t *talk) ask(e event.Event, d fields) {
	drop := func(fits func(question) bool) { t.questions = slices.DeleteFunc(t.questions, fits) }
	switch e.Type {
	case event.InputRequested:
		if t.clocks && d.Timeout != 0 {
			t.ends[d.InputID] = e.Time.Add(time.Duration(d.Timeout * float64(time.Second))).UTC().Format("2006-01-02T15:04:05.000Z")
		}
		q := question{id: d.InputID, run: d.RunID, SnapshotQuestion: wire.SnapshotQuestion{Type: string(e.Type), Data: canonical(e.Data)}}
		if n := slices.IndexFunc(t.questions, func(q question) bool { return q.id == d.InputID }); n >= 0 {
			t.questions[n] = q
			return
		}
		t.questions = append(t.questions, q)
	case event.InputAnswered, event.InputExpired:
		delete(t.ends, d.InputID)
		drop(func(q question) bool { return q.id == d.InputID })
	case event.RunCompleted, event.RunFailed, event.RunCancelled:
		drop(func(q question) bool { return q.run == d.RunID })
	case event.SessionDeleted:
		drop(func(question) bool { return true })
	}
}

func planOf(steps []event.Step) []wire.SnapshotStep {
	out := make([]wire.SnapshotStep, 0, len(steps))
	for _, s := range steps {
		out = append(out, wire.SnapshotStep{ID: s.ID, Title: s.Title, Dependencies: filled(s.Dependencies), Status: stateWaiting})
	}
	return out
}

func answer(d fields, id, text string, done bool) item {
	return item{SnapshotItem: wire.SnapshotItem{Kind: itemAnswer, ID: id, Run: d.RunID, Done: ptr(done), Step: d.StepID}, text: []byte(text)}
}

// tool is the effect of an event on a call.
func tool(status string, text func(fields) string) func(*talk, event.Event, fields) {
	return func(t *talk, _ event.Event, d fields) {
		t.change(itemTool, d.RunID, d.CallID, func(i *item) {
			if i.Status = status; text != nil {
				i.text = []byte(text(d))
			}
		})
	}
}

func message(d fields) string { return textOf(d.Message) }

// step is the effect of an event on a step.
func step(status string, text func(fields) string) func(*talk, event.Event, fields) {
	return func(t *talk, _ event.Event, d fields) { t.step(d.RunID, d.StepID, status, text(d), true) }
}

const planning = "planning"

// talkTakers hold the effect of each type of event on a conversation.
var talkTakers = map[event.Type]func(*talk, event.Event, fields){
	event.InputRequested: func(*talk, event.Event, fields) {}, // see ask
	event.InputExpired:   expired,
	event.MessageReceived: func(t *talk, _ event.Event, d fields) {
		t.active = append(t.active, d.RunID)
		t.add(item{SnapshotItem: wire.SnapshotItem{Kind: itemUser, ID: d.MessageID, Run: d.RunID}, text: []byte(d.Content)})
	},
	event.RunStarted: func(t *talk, _ event.Event, d fields) {
		if d.Repairs != "" { // it has no message of its own
			t.active = append(t.active, d.RunID)
		}
	},
	event.MessageDelta:       messageDelta,
	event.MessageCompleted:   messageCompleted,
	event.MessageDiscarded:   func(t *talk, _ event.Event, d fields) { t.remove(itemAnswer, d.RunID, d.MessageID) },
	event.ReasoningDelta:     reasoningDelta,
	event.ReasoningCompleted: reasoningCompleted,
	event.RequestFailed:      requestFailed,
	event.RetryScheduled:     retryScheduled,
	event.JobStarted:         func(t *talk, _ event.Event, d fields) { t.goesOn(d) },
	event.Notice:             noticed,
	event.ToolCalled: func(t *talk, _ event.Event, d fields) {
		t.add(item{SnapshotItem: wire.SnapshotItem{
			Kind: itemTool, ID: d.CallID, Run: d.RunID, Name: ptr(d.Tool), Arguments: canonical(d.Arguments), Step: d.StepID, Status: "called",
		}})
	},
	event.ToolStarted:   tool(stateRunning, nil),
	event.ToolCompleted: tool(stateCompleted, func(d fields) string { return textOf(d.Result) }),
	event.ToolFailed:    tool(stateFailed, message),
	event.ToolUnknown:   tool(stateUnknown, message),
	event.PlanCompleted: func(t *talk, _ event.Event, d fields) {
		i := item{SnapshotItem: wire.SnapshotItem{Kind: itemPlan, ID: d.PlanID, Run: d.RunID, Summary: ptr(d.Summary), Status: stateWaiting}}
		i.Steps = planOf(d.steps())
		t.add(i)
	},
	event.PlanCancelled: func(t *talk, _ event.Event, d fields) { t.change(itemPlan, d.RunID, d.PlanID, (*item).drop) },
	event.InputAnswered: answered,
	event.StepStarted:   func(t *talk, _ event.Event, d fields) { t.step(d.RunID, d.Step.ID, stateRunning, "", false) },
	event.StepCompleted: step(stateCompleted, func(d fields) string { return d.Output }),
	event.StepFailed:    step(stateFailed, message),
	event.StepCancelled: step(stateCancelled, func(d fields) string { return d.Reason }),
	event.StepRestarted: step(stateWaiting, func(fields) string { return "" }),
	event.RunCompleted: func(t *talk, _ event.Event, d fields) {
		if d.Content != "" && !t.says(d.RunID, d.Content) {
			d.StepID = ""
			t.add(answer(d, d.RunID+"-answer", d.Content, true))
		}
		t.end(d.RunID, d.Outcome == "rejected" || d.Outcome == stateCancelled)
	},
	event.RunFailed: func(t *talk, _ event.Event, d fields) {
		text := d.Answer
		if text == "" {
			text = message(d)
		}
		t.add(over(d, d.Code, text))
		t.end(d.RunID, false)
	},
	event.RunCancelled: func(t *talk, _ event.Event, d fields) {
		t.add(over(d, "RUN_CANCELLED", "The run was stopped."))
		t.end(d.RunID, true)
	},
}

func over(d fields, code, text string) item {
	return item{SnapshotItem: wire.SnapshotItem{Kind: itemEnd, ID: d.RunID, Run: d.RunID, Code: &code}, text: []byte(text)}
}

func (d fields) steps() []event.Step {
	if d.Steps == nil {
		return nil
	}
	return *d.Steps
}
