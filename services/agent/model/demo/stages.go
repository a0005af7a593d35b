package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/agent/model"
	"github.com/waggle-dev/waggle/services/agent/prompt"
)

// answer returns the text for a request, or the calls that have to be made first: a
// plan while planning, a summary of the results while aggregating, and otherwise what
// the last message, or the task, asks for.
func answer(req model.Request) (string, []event.ToolCall) {
	stage, d, ok := prompt.Read(req)
	switch {
	case !ok && req.Schema != nil:
		return newTurn(req).plan(), nil // the one form that this model knows
	case !ok:
	case stage == event.StagePlanning:
		return newTurn(asChat(req, d.Question)).plan(), nil
	case stage == event.StageAggregation:
		return summary(d.Results), nil
	case d.Task != nil:
		return newTurn(solve(req, d)).run()
	}
	return newTurn(req).member()
}

// asChat replaces the message that holds the data by a text, so that the request is
// like one of a chat.
func asChat(req model.Request, text string, before ...model.Message) model.Request {
	last := len(req.Messages) - 1
	for req.Messages[last].Role != model.RoleUser { // there is one: the data was in it
		last--
	}
	all := append(slices.Clone(req.Messages[:last]), before...)
	all = append(all, model.Message{Role: model.RoleUser, Content: text})
	req.Messages = append(all, req.Messages[last+1:]...)
	return req
}

// solve makes a chat of a task: what it depends on has been said before, so that "it"
// is the file that was in it.
func solve(req model.Request, d prompt.Data) model.Request {
	var before []model.Message
	for _, r := range d.Inputs {
		said := r.Title
		if strings.HasSuffix(said, cutMark) { // the file may be in what is missing
			said += " " + r.Output
		}
		before = append(before, model.Message{Role: model.RoleUser, Content: said},
			model.Message{Role: model.RoleAssistant, Content: r.Output})
	}
	text := d.Task.Description
	if strings.TrimSpace(text) == "" {
		text = d.Task.Title
	}
	return asChat(req, text, before...)
}

const (
	maxTitle = 72 // keeps the titles of tasks to a line of a terminal
	cutMark  = "..."
)

// plan splits the user's message as run does, and makes a task of each part.
func (t *turn) plan() string {
	type task struct {
		ID           string   `json:"id"`
		Title        string   `json:"title"`
		Description  string   `json:"description"`
		Dependencies []string `json:"dependencies"`
		Capability   string   `json:"capability"`
		Priority     int      `json:"priority"`
	}
	parts := t.parts()
	var list []task
	var why []string
	for i := range parts {
		k := task{ID: taskID(i), Title: shorten(parts[i].text), Description: parts[i].text, Dependencies: []string{}}
		for _, j := range needs(parts, i) {
			k.Dependencies = append(k.Dependencies, taskID(j))
			why = append(why, fmt.Sprintf("%s refers to %s.", taskID(i), taskID(j)))
		}
		list = append(list, k)
	}
	if len(why) == 0 {
		why = append(why, "No part refers to another.")
	}
	raw, err := json.Marshal(map[string]any{
		"tasks": list, "reasoning": strings.Join(why, " "),
		"summary": fmt.Sprintf("The request has %s.", plural(len(list), "part")),
	})
	if err != nil { // cannot happen: strings always have a JSON form
		return ""
	}
	return string(raw)
}

func taskID(i int) string { return fmt.Sprintf("task_%d", i+1) }

func shorten(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > maxTitle {
		return strings.TrimSpace(string(r[:maxTitle-len(cutMark)])) + cutMark
	}
	return s
}

// part is one request of the user's message.
type part struct {
	text   string // as written, without politeness around it
	lead   string // what stood between it and the one before
	effect bool
	small  bool
	files  []string
}

// parts returns the requests in the user's message, at least one. Politeness is left
// out where there is anything else.
func (t *turn) parts() []part {
	p := &splitter{turn: t, last: t.lastFile(), cache: map[string]bool{}}
	p.split(clean(t.user))
	all := p.parts
	if !p.any {
		all = nil
	}
	if rest := slices.DeleteFunc(slices.Clone(all), func(k part) bool { return k.small }); len(rest) > 0 {
		return rest
	}
	if text := clean(t.user); text != "" {
		return []part{{text: text}}
	}
	return []part{{text: "help"}}
}

var (
	// afterwards begins what has to wait for what stands before it, atLast what has to wait for all of it.
	afterwards = regexp.MustCompile(`(?i)\b(?:then|after (?:that|this|it)|afterwards?|next|with (?:that|this)|based on (?:that|this|it))\b`)
	atLast     = regexp.MustCompile(`(?i)\b(?:finally|lastly|at the end|in the end)\b`)
	// backward are words that mean something that was spoken of before.
	backward = regexp.MustCompile(`(?i)\b(?:it|its|them|that (?:file|one|result)|this (?:file|one|result)|the (?:same|results?|output|answer|former|latter))\b`)
	// idle are phrases whose "it" means nothing.
	idle = regexp.MustCompile(`(?i)\b(?:time|day|date|year|month|weekday) (?:is|was) it\b`)
	cite = regexp.MustCompile(`"[^"]*"|“[^”]*”`)
)

// needs returns the parts that part i has to wait for: the one before it where it
// refers back or says "then", all where it says "finally", and those that touch the
// same file where either changes something.
func needs(parts []part, i int) []int {
	k := parts[i]
	var out []int
	words := k.lead + " " + idle.ReplaceAllString(cite.ReplaceAllString(k.text, " "), " ")
	for j := range parts[:i] {
		shared := slices.ContainsFunc(k.files, func(f string) bool { return slices.Contains(parts[j].files, f) })
		switch {
		case atLast.MatchString(words):
		case j == i-1 && (afterwards.MatchString(words) || backward.MatchString(words)):
		case shared && (k.effect || parts[j].effect):
		default:
			continue
		}
		out = append(out, j)
	}
	return out
}

// summary makes one answer of the results of tasks.
func summary(all []prompt.Result) string {
	if len(all) == 1 && all[0].Status == "completed" {
		return all[0].Output
	}
	counts := map[string]int{}
	var blocks []string
	for i, r := range all {
		counts[r.Status]++
		text := strings.TrimSpace(r.Output)
		switch {
		case r.Status != "completed" && r.Error != "":
			text = "This was not done: " + r.Error
		case r.Status != "completed":
			text = "This was not done."
		case text == "":
			text = "Done, without a result."
		}
		blocks = append(blocks, fmt.Sprintf("%d. %s\n%s", i+1, r.Title, text))
	}
	head := fmt.Sprintf("Here is what came of %s", plural(len(all), "task"))
	if lost := len(all) - counts["completed"]; lost > 0 {
		head += fmt.Sprintf(" (%d done, %d failed, %d cancelled)", counts["completed"], counts["failed"], counts["cancelled"])
	}
	return strings.Join(append([]string{head + ":"}, blocks...), "\n\n")
}
