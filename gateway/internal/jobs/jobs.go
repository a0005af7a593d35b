// Package jobs follows the jobs of a run that have begun and not ended: which of them work, and which wait for answers.
package jobs

import "slices"

// Job is a job of a run. It is a value: a copy of Jobs shares none of it with another.
type Job struct {
	Step   string   // that it solves; empty for other stages
	inputs []string // questions that it waits for, and nothing modifies; nil = it runs or is about to
}

// WaitsFor reports whether the job waits for the answer to a question.
func (j Job) WaitsFor(inputID string) bool { return slices.Contains(j.inputs, inputID) }

// Jobs are those of a run, by name. maps.Clone copies them.
type Jobs map[string]Job

// Ask notes that a job waits for the answer to a question.
func (js Jobs) Ask(name, inputID string) {
	if j, known := js[name]; known {
		j.inputs = append(slices.Clip(j.inputs), inputID)
		js[name] = j
	}
}

// Answer notes that a question is over: jobs that wait for it continue if it was allowed, or if it was their last.
func (js Jobs) Answer(inputID string, allowed bool) {
	for name, j := range js {
		i := slices.Index(j.inputs, inputID)
		if i < 0 {
			continue
		}
		if j.inputs = slices.Delete(slices.Clone(j.inputs), i, i+1); allowed || len(j.inputs) == 0 {
			j.inputs = nil
		}
		js[name] = j
	}
}

// Start notes that a job works.
func (js Jobs) Start(name string) {
	if j, known := js[name]; known {
		j.inputs = nil
		js[name] = j
	}
}

// Suspend notes that a job waits for the answers to questions. outcome says of a question whether it is over, and was allowed: with one
// that was, the job resumes at once.
func (js Jobs) Suspend(name string, inputs []string, outcome func(inputID string) (over, allowed bool)) {
	j, known := js[name]
	if !known {
		return
	}
	var open []string
	for _, id := range inputs {
		switch over, allowed := outcome(id); {
		case !over:
			open = append(open, id)
		case allowed:
			return
		}
	}
	if len(open) > 0 {
		j.inputs = open
		js[name] = j
	}
}

// Work reports whether a job works, and otherwise how many jobs of steps wait.
func (js Jobs) Work() (works bool, waiting int) {
	for _, j := range js {
		if j.inputs == nil {
			return true, 0
		}
		if j.Step != "" {
			waiting++
		}
	}
	return false, waiting
}
