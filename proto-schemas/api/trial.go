package api

// ModelTrial is the result of trying one ability of the model of a worker.
type ModelTrial struct {
	Model      string `json:"model"`        // as the setting "model"
	Trial      int    `json:"trial"`        // number of the trial, from 0
	Of         int    `json:"of"`           // number of trials
	Name       string `json:"name"`         // answer, tool call, parallel calls, JSON answer
	Grade      string `json:"grade"`        // works, doubts, missing
	Is         string `json:"is"`           // the observation
	Do         string `json:"do,omitempty"` // the setting to change; absent if it works
	DurationMS int64  `json:"duration_ms"`
	Stopped    bool   `json:"stopped,omitempty"` // the model does not answer: the other trials need not be made

	InputTokens  *int64 `json:"input_tokens,omitempty"` // absent: the provider reports none
	OutputTokens *int64 `json:"output_tokens,omitempty"`
}
