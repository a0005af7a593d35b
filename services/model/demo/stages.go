package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/prompt"
)

// answer returns the text for a request, or the calls that come first: a plan while planning, a summary of the results while
// aggregating, and otherwise the answer to the step or to the last message.
func answer(req model.Request) (string, []event.ToolCall) {
	stage, d, ok := prompt.Read(req)
	switch {
	case !ok && req.Schema != nil:
		return newTalk(req).plan(), nil // the one form that this model knows
	case !ok:
	case stage == event.StagePlanning:
		t := newTalk(asChat(req, d.Question))
		t.capabilities = d.Capabilities
		return t.plan(), nil
	case stage == event.StageAggregation:
		return summary(d.Results), nil
	case d.Task != nil:
		return newTalk(solve(req, d)).run()
	}
	return newTalk(req).member()
}

// asChat replaces the message that holds the data with a text, which makes the request one of a chat.
func asChat(req model.Request, text string, before ...model.Message) model.Request {
	last := len(req.Messages) - 1
	for req.Messages[last].Role != model.RoleUser { // the message with the data ends the loop
		last--
	}
	all := append(slices.Clone(req.Messages[:last]), before...)
	all = append(all, model.Message{Role: model.RoleUser, Content: text})
	req.Messages = append(all, req.Messages[last+1:]...)
	return req
}

// solve turns a step into a chat: the steps that it depends on are the user's earlier messages, so that "it" means their
// file.
func solve(req model.Request, d prompt.Data) model.Request {
	var before []model.Message
	for _, r := range d.Inputs {
		said := r.Title
		if strings.HasSuffix(said, cutMark) { // the missing part may name the file
			said += " " + r.Output
		}
		before = append(before, model.Message{Role: model.RoleUser, Content: said})
	}
	text := d.Task.Description
	if strings.TrimSpace(text) == "" {
		text = d.Task.Title
	}
	return asChat(req, text, before...)
}

const (
	maxTitle = 72 // keeps the titles of steps to a line of a terminal
	cutMark  = "..."
)

// toAgent is a request to an agent with a capability: "ask shouting to greet the bees".
var toAgent = regexp.MustCompile(`(?is)^(?:please )?ask (?:the )?(.+)$`)

// plan makes a step of each clause of the user's message.
func (t *talk) plan() string {
	var steps []map[string]any
	var why []string
	all := t.clauses()
	for i, c := range all {
		capability, text := "", c.text
		if m := toAgent.FindStringSubmatch(c.text); m != nil {
			if name, request := addressed(t.capabilities, m[1]); name != "" {
				capability, text = name, request
			}
		}
		dependencies := []string{}
		for _, j := range needs(all, i) {
			dependencies = append(dependencies, stepID(j))
			why = append(why, fmt.Sprintf("%s refers to %s.", stepID(i), stepID(j)))
		}
		steps = append(steps, map[string]any{
			"id": stepID(i), "title": shorten(text), "description": text, "dependencies": dependencies, "capability": capability, "priority": 0,
			"estimated_tokens": tokensOf(text), "estimated_time_seconds": 1,
		})
	}
	if len(why) == 0 {
		why = append(why, "No part refers to another.")
	}
	raw, err := json.Marshal(map[string]any{
		"tasks": steps, "reasoning": strings.Join(why, " "),
		"summary": fmt.Sprintf("The request has %s.", plural(len(steps), "part")),
	})
	if err != nil { // unreachable: strings always have a JSON form
		return ""
	}
	return string(raw)
}

// tokensOf guesses what a step takes: its request and an answer of about the same length, at four characters a token.
func tokensOf(text string) int { return max(1, len(text)/2) }

// addressed returns the longest of the names that the text begins with, and the request after it: "shouting to greet the
// bees". Both are empty if the text begins with no name.
func addressed(names []string, text string) (name, request string) {
	for _, n := range names {
		to := regexp.MustCompile(`(?is)^` + regexp.QuoteMeta(n) + `(?: agent| the task)?:? (?:to )?(.+)$`)
		if m := to.FindStringSubmatch(text); m != nil && len(n) > len(name) {
			name, request = n, unquote(m[1])
		}
	}
	return name, request
}

func stepID(i int) string { return fmt.Sprintf("task_%d", i+1) }

func shorten(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > maxTitle {
		return strings.TrimSpace(string(r[:maxTitle-len(cutMark)])) + cutMark
	}
	return s
}

var (
	// afterwards begins a request that waits for the previous one, atLast one that waits for all.
	afterwards = regexp.MustCompile(`(?i)\b(?:then|after that|next)\b`)
	atLast     = regexp.MustCompile(`(?i)\bfinally\b`)
	// backward matches words that refer to an earlier request, except the "it" of clocks.
	backward = regexp.MustCompile(`(?i)\b(?:it|its|that|them)\b`)
	clocks   = regexp.MustCompile(`(?i)(?:day|date|time) is it$`)
)

// needs returns the clauses that clause i has to wait for: the previous one where clause i refers back or says "then", all
// where it says "finally", and those that name the same file where either changes it.
func needs(all []*clause, i int) []int {
	c := all[i]
	back := backward.MatchString(protected.ReplaceAllString(c.text, "")) && !clocks.MatchString(c.text)
	var out []int
	for j, b := range all[:i] {
		shared := slices.ContainsFunc(c.files(), func(f string) bool { return slices.Contains(b.files(), f) })
		switch {
		case atLast.MatchString(c.lead):
		case j == i-1 && (back || afterwards.MatchString(c.lead)):
		case shared && (c.action.effect || b.action.effect):
		default:
			continue
		}
		out = append(out, j)
	}
	return out
}

// summary joins the results of steps into one answer.
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
		blocks = append(blocks, fmt.Sprintf("\n\n%d. %s\n%s", i+1, r.Title, text))
	}
	head := fmt.Sprintf("Here is what came of %s", plural(len(all), "step"))
	if counts["completed"] < len(all) {
		head += fmt.Sprintf(" (%d done, %d failed, %d cancelled)", counts["completed"], counts["failed"], counts["cancelled"])
	}
	return head + ":" + strings.Join(blocks, "")
}
