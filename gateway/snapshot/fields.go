package snapshot

import (
	"encoding/json"
	"unicode/utf16"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// fields are the members of events of conversations that the folds look at.
type fields struct {
	RunID     string          `json:"run_id"`
	JobID     string          `json:"job_id"`
	StepID    string          `json:"step_id"`
	Stage     string          `json:"stage"`
	MessageID string          `json:"message_id"`
	CallID    string          `json:"call_id"`
	InputID   string          `json:"input_id"`
	PlanID    string          `json:"plan_id"`
	Content   string          `json:"content"`
	Text      string          `json:"text"`
	Result    json.RawMessage `json:"result"`
	Message   json.RawMessage `json:"message"`
	Output    string          `json:"output"`
	Answer    string          `json:"answer"`
	Code      string          `json:"code"`
	Outcome   string          `json:"outcome"`
	Summary   string          `json:"summary"`
	Model     string          `json:"model"`
	Tool      string          `json:"tool"`
	Scope     string          `json:"scope"`
	Repairs   string          `json:"repairs"`
	Decision  string          `json:"decision"`
	Attempt   json.RawMessage `json:"attempt"`
	Arguments json.RawMessage `json:"arguments"`
	Steps     *[]event.Step   `json:"steps"`
	Step      event.Step      `json:"step"`
	Timeout   float64         `json:"timeout_seconds"`
	Inputs    []string        `json:"inputs"`
	By        string          `json:"by"`
	Feedback  string          `json:"feedback"`
	Reason    string          `json:"reason"`
	Withdrawn bool            `json:"withdrawn"`

	Level        string `json:"level"`
	StopReason   string `json:"stop_reason"`
	StopDetail   string `json:"stop_detail"`
	Try          int    `json:"try"`
	MaxTries     int    `json:"max_tries"`
	MaxAttempts  int    `json:"max_attempts"`
	RetryAfterMS int64  `json:"retry_after_ms"`
	NextModel    string `json:"next_model"`
}

// read returns the fields of an event. Data in another form has none of them.
func read(e event.Event) fields {
	var d fields
	if json.Unmarshal(e.Data, &d) != nil {
		return fields{}
	}
	return d
}

// cut returns the first most UTF-16 units of a text, without half a character, and reports whether the text has more.
func cut(s string, most int) (string, bool) {
	if len(s) <= most {
		return s, false
	}
	n := 0
	for i, r := range s {
		if n += utf16.RuneLen(r); n > most {
			return s[:i], true
		}
	}
	return s, false
}
