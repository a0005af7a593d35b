// Package trial tests the abilities of a configured model with requests: a streamed answer, a tool call, two calls at
// once, and an answer in JSON.
package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
)

// Grade says how a trial went.
type Grade string

// Grades.
const (
	Works   Grade = "works"
	Doubts  Grade = "doubts" // Waggle copes, with a loss that the result names
	Missing Grade = "missing"
)

// Result is the outcome of one trial.
type Result struct {
	Name    string        // of the trial: "answer", "tool call"
	Grade   Grade         //
	Is      string        // the observation
	Do      string        // the setting to change; empty if it works
	Took    time.Duration // to the end of the answer
	Usage   model.Usage   // of all requests of the trial
	Stopped bool          // the others need not be tried
}

// Clock is when something happened.
type Clock func() time.Time

// all are the trials, in their order.
var all = []struct {
	name string
	run  func(*trials) Result
}{
	{"answer", (*trials).answer}, {"tool call", (*trials).call}, {"parallel calls", (*trials).calls}, {"JSON answer", (*trials).json},
}

// Count is the number of trials.
func Count() int { return len(all) }

// Run makes the trials one after the other, and passes each result on. It stops after the first if that shows that the model
// does not answer at all. The model is asked five or six short questions.
func Run(ctx context.Context, m model.Model, now Clock, each func(Result)) {
	for i := range all {
		r := One(ctx, m, now, i)
		each(r)
		if r.Stopped || ctx.Err() != nil {
			return
		}
	}
}

// One makes the n-th trial, from 0.
func One(ctx context.Context, m model.Model, now Clock, n int) Result {
	t := &trials{ctx: ctx, m: m, now: now, used: model.Usage{Known: true}}
	began := now()
	r := all[n].run(t)
	r.Name, r.Took, r.Usage = all[n].name, now().Sub(began), t.used
	r.Stopped = n == 0 && r.Grade == Missing
	return r
}

// maxTokens bounds each answer. It leaves room for the reasoning of models that always think.
const maxTokens = 2048

type trials struct {
	ctx  context.Context //nolint:containedctx // of one call of Run
	m    model.Model
	now  Clock
	used model.Usage
	ids  int
}

func (t *trials) request(text string, tools ...model.ToolSpec) model.Request {
	return model.Request{
		System: "This is a test of your abilities. Be brief.", Messages: []model.Message{{Role: model.RoleUser, Content: text}},
		Tools: tools, MaxTokens: maxTokens, Now: t.now(),
		NewID: func() string { t.ids++; return fmt.Sprintf("call_trial_%d", t.ids) },
	}
}

// ask returns the reply and the number of pieces in which its text came.
func (t *trials) ask(req model.Request) (r model.Reply, pieces int, err error) {
	r, err = t.m.Generate(t.ctx, req, model.Text(func(string) error { pieces++; return nil }))
	t.used.InputTokens += r.Usage.InputTokens
	t.used.OutputTokens += r.Usage.OutputTokens
	t.used.TokenDetails = t.used.Plus(r.Usage.TokenDetails)
	t.used.Known = t.used.Known && r.Usage.Known
	return r, pieces, err
}

func (t *trials) answer() Result {
	r, pieces, err := t.ask(t.request("Count from one to twenty in words, separated by commas."))
	switch {
	case err != nil:
		return failed(err)
	case r.StopReason == model.StopOther:
		return Result{Grade: Doubts, Is: fmt.Sprintf("the answer ended for an unknown reason, %q", r.StopDetail), Do: "report the word, so that Waggle learns what it means"}
	case pieces < 2:
		return Result{Grade: Doubts, Is: fmt.Sprintf("%s, in one piece", quote(r.Text)), Do: "a proxy may hold the answer back: switch its buffering off"}
	case !r.Usage.Known:
		return Result{Grade: Doubts, Is: fmt.Sprintf("%s, in %d pieces, without usage: budgets and costs cannot count it", quote(r.Text), pieces), Do: "make the server report usage (stream_options.include_usage)"}
	}
	is := fmt.Sprintf("%s, in %d pieces", quote(r.Text), pieces)
	if r.Reasoning != "" {
		is += fmt.Sprintf(", after %d bytes of reasoning", len(r.Reasoning))
	}
	return Result{Grade: Works, Is: is}
}

// weather is the tool of the trials.
var weather = model.ToolSpec{
	Name: "get_weather", Description: "Returns the weather in a city.",
	InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
}

const noTools = "start the server with calls of tools (vLLM: --enable-auto-tool-choice --tool-call-parser; llama.cpp: --jinja), or choose a model that has them"

func (t *trials) call() Result {
	req := t.request("What is the weather in Paris? Use the tool.", weather)
	r, _, err := t.ask(req)
	switch {
	case err != nil:
		return failed(err)
	case len(r.LeftOut) > 0:
		return Result{Grade: Missing, Is: r.LeftOut[0].Reason, Do: noTools}
	case len(r.ToolCalls) == 0:
		return Result{Grade: Missing, Is: "it answered " + quote(r.Text) + " and called no tool", Do: noTools}
	case city(r.ToolCalls[0]) == "":
		return Result{Grade: Doubts, Is: "its call has other arguments than the tool wants: " + quote(string(r.ToolCalls[0].Arguments)), Do: "choose a model that is better with tools"}
	}
	r2, _, err := t.ask(answered(req, r, "sunny, 21 degrees"))
	switch {
	case err != nil:
		bad := failed(err)
		bad.Is = "it calls the tool, and refuses the result: " + bad.Is
		return bad
	case !strings.Contains(r2.Text, "21") && !strings.Contains(strings.ToLower(r2.Text), "sunny"):
		return Result{Grade: Doubts, Is: "it called the tool, and does not say the result: " + quote(r2.Text), Do: "choose a model that is better with tools"}
	}
	return Result{Grade: Works, Is: fmt.Sprintf("called with %s, then answered %s", quote(string(r.ToolCalls[0].Arguments)), quote(r2.Text))}
}

func (t *trials) calls() Result {
	r, _, err := t.ask(t.request("What is the weather in Paris and in Oslo? Call the tool for both cities at once, in one message.", weather))
	switch {
	case err != nil:
		return failed(err)
	case len(r.LeftOut) > 0:
		return Result{Grade: Missing, Is: r.LeftOut[0].Reason, Do: noTools}
	case len(r.ToolCalls) < 2:
		return Result{Grade: Doubts, Is: fmt.Sprintf("calls in one message: %d; tools run one after the other", len(r.ToolCalls)), Do: "nothing, if that is fast enough; some servers have a switch for parallel calls"}
	case len(r.ToolCalls) > 2 || city(r.ToolCalls[0]) == city(r.ToolCalls[1]):
		return Result{Grade: Doubts, Is: fmt.Sprintf("%d calls, not one for each city", len(r.ToolCalls)), Do: "update the server: its stream repeats calls"}
	}
	return Result{Grade: Works, Is: "one call for each city"}
}

// form is the form of the answer in JSON.
var form = &model.Schema{
	Name: "capital", JSON: json.RawMessage(`{"type":"object","properties":{"country":{"type":"string"},"capital":{"type":"string"}},"required":["country","capital"],"additionalProperties":false}`),
}

func (t *trials) json() Result {
	req := t.request(`What is the capital of France? Answer with a JSON object with the members "country" and "capital", and nothing else.`)
	req.Schema = form
	r, _, err := t.ask(req)
	if err != nil {
		return failed(err)
	}
	var got map[string]string
	text := strings.TrimSpace(r.Text)
	switch inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "```json"), "```"), "```"); {
	case json.Unmarshal([]byte(text), &got) == nil && got["capital"] != "":
		return Result{Grade: Works, Is: quote(text)}
	case json.Unmarshal([]byte(inner), &got) == nil && got["capital"] != "":
		return Result{Grade: Doubts, Is: "JSON in a code block: the server does not enforce the form, Waggle takes it out", Do: "nothing, or a server with structured output"}
	}
	return Result{Grade: Missing, Is: "no JSON of the form: " + quote(text), Do: "choose another model for planned runs, or a server with structured output"}
}

// answered is the request with the reply and a result for each of its calls.
func answered(req model.Request, r model.Reply, result string) model.Request {
	req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Content: r.Text, ToolCalls: r.ToolCalls, Reasoning: r.Reasoning, PassBack: r.PassBack})
	for _, c := range r.ToolCalls {
		req.Messages = append(req.Messages, model.Message{Role: model.RoleTool, ToolCallID: c.ID, Content: result})
	}
	return req
}

func city(c event.ToolCall) string {
	var args struct{ City string }
	if json.Unmarshal(c.Arguments, &args) != nil || c.Name != weather.Name {
		return ""
	}
	return args.City
}

// remedies are what to do about failures.
var remedies = map[fault.Code]string{
	fault.ModelKeyRefused:     "correct the provider's api_key",
	fault.ModelNotFound:       "correct the name of the model, or the provider's base_url (with the path of the version, such as /v1)",
	fault.ModelOutOfQuota:     "pay in, or raise the limit of the account",
	fault.ModelBusy:           "wait, or set models.fallbacks",
	fault.ModelRateLimited:    "wait, raise the limits of the account, or set models.fallbacks",
	fault.ModelTimeout:        "look whether the server is busy or still loads the model",
	fault.ModelInputTooLong:   "give the model a larger context (Ollama: num_ctx; vLLM: --max-model-len)",
	fault.ModelNoAnswer:       "raise worker.max_tokens: reasoning counts",
	fault.ModelContentRefused: "the provider's filter refuses a harmless question: look at its settings",
}

func failed(err error) Result {
	f, ok := errors.AsType[*model.Failure](err)
	if !ok {
		return Result{Grade: Missing, Is: err.Error(), Do: "look at the model's server"}
	}
	do, ok := remedies[f.Fault.Code]
	if !ok {
		do = "look at the server's log, and at the provider's base_url, headers and body"
	}
	return Result{Grade: Missing, Is: strings.TrimSpace(fmt.Sprintf("%s (%s) %s", f.Fault.Code, status(f.Said), f.Said.Message)), Do: do}
}

func status(e event.ProviderError) string {
	if e.Status == 0 {
		return "no response"
	}
	return fmt.Sprint(e.Status)
}

// maxQuote bounds a quotation of the model.
const maxQuote = 60

func quote(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxQuote {
		s = string(r[:maxQuote]) + "..."
	}
	return fmt.Sprintf("%q", s)
}
