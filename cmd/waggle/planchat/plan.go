package planchat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// draft is a plan that a person may change before it is carried out.
type draft struct {
	tasks   []myagent.Task
	changed bool
}

// number returns the position of a task in the plan, from 1; 0 if it is not in it.
func (d *draft) number(id string) int {
	return 1 + slices.IndexFunc(d.tasks, func(t myagent.Task) bool { return t.ID == id })
}

// table returns the plan for people, a row a task.
func (d *draft) table() [][]string {
	rows := [][]string{{"#", "Step", "After", "Estimate"}}
	for i, t := range d.tasks {
		after := make([]string, len(t.Dependencies))
		for j, id := range t.Dependencies {
			after[j] = strconv.Itoa(d.number(id))
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), t.Title, strings.Join(after, ", "), estimate(t)})
	}
	return rows
}

func estimate(t myagent.Task) string {
	var parts []string
	if t.EstimatedSeconds > 0 {
		parts = append(parts, fmt.Sprintf("%d s", t.EstimatedSeconds))
	}
	if t.EstimatedTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", t.EstimatedTokens))
	}
	return strings.Join(parts, ", ")
}

// at returns the index of the task with the number that the person wrote.
func (d *draft) at(word string) (int, error) {
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > len(d.tasks) {
		return 0, fmt.Errorf("step %q does not exist; use a number from 1 to %d", word, len(d.tasks))
	}
	return n - 1, nil
}

// drop takes tasks out, and the dependencies on them.
func (d *draft) drop(words []string) error {
	gone := map[string]bool{}
	for _, w := range words {
		i, err := d.at(w)
		if err != nil {
			return err
		}
		gone[d.tasks[i].ID] = true
	}
	switch {
	case len(gone) == 0:
		return errors.New("specify the steps to drop, such as: drop 2 3")
	case len(gone) == len(d.tasks):
		return errors.New("at least one step must remain; use n to reject the plan")
	}
	d.tasks = slices.DeleteFunc(slices.Clone(d.tasks), func(t myagent.Task) bool { return gone[t.ID] })
	for i := range d.tasks {
		d.tasks[i].Dependencies = slices.DeleteFunc(slices.Clone(d.tasks[i].Dependencies), func(id string) bool { return gone[id] })
	}
	d.changed = true
	return nil
}

// retitle gives a task another title.
func (d *draft) retitle(word, title string) error {
	i, err := d.at(word)
	if err != nil {
		return err
	}
	if title == "" {
		return errors.New("specify the new title, such as: title 2 A BETTER ONE")
	}
	d.tasks = slices.Clone(d.tasks)
	d.tasks[i].Title = title
	d.changed = true
	return nil
}

// verdict is a person's decision. The zero value is undecided.
type verdict struct {
	decided  bool
	approved bool
	feedback string
}

// yesOrNo parses a line that approves or rejects. Any other one is undecided.
func yesOrNo(line string) verdict {
	words := strings.FieldsFunc(line, isSpace)
	_, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
	if len(words) == 0 {
		return verdict{}
	}
	switch strings.ToLower(words[0]) {
	case "y", "yes", "ok", "approve":
		return verdict{decided: true, approved: true}
	case "n", "no", "reject":
		return verdict{decided: true, feedback: strings.TrimSpace(reason)}
	}
	return verdict{}
}

// isSpace reports whether a rune separates words.
func isSpace(r rune) bool { return r == ' ' || r == '\t' || r == ',' }

// content is that of the response with the decision.
func (v verdict) content() map[string]any {
	out := map[string]any{"approved": v.approved}
	if v.feedback != "" {
		out["feedback"] = v.feedback
	}
	return out
}

const decisions = `y                approve and proceed
n WHY            reject, with the reason if you like
drop 2 3         take tasks out
title 2 NEW ONE  give a task another title`

// decide parses a line of the person. The error names the part that is not valid.
func (d *draft) decide(line string) (verdict, error) {
	words := strings.FieldsFunc(line, isSpace)
	if len(words) == 0 {
		return verdict{}, errors.New("y or n? (? lists more answers)")
	}
	if v := yesOrNo(line); v.decided {
		return v, nil
	}
	_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch strings.ToLower(words[0]) {
	case "drop":
		return verdict{}, d.drop(words[1:])
	case "title":
		if len(words) < 2 {
			return verdict{}, errors.New("specify the step, such as: title 2 A BETTER ONE")
		}
		_, title, _ := strings.Cut(strings.TrimSpace(rest), " ")
		return verdict{}, d.retitle(words[1], strings.TrimSpace(title))
	}
	return verdict{}, errors.New(decisions)
}

// answer is the content of the response to the question.
func (d *draft) answer(v verdict) map[string]any {
	if v.approved && d.changed {
		return map[string]any{"confirmed": true, "tasks": d.tasks}
	}
	return v.content()
}
