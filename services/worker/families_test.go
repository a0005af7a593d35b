package worker_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/anthropic"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/openai"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/tools"
)

// pays is the call that the answers below ask for, as the pieces of chat completions have it.
const pays = `"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"bank_pay","arguments":"{\"amount\":3}"}EXTRA}]`

func chunk(delta, finish, more string) string {
	return `data: {"choices":[{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + `}]` + more + "}\n\n"
}

// family is a kind of model servers by the shape of an answer that thinks and calls a tool.
type family struct {
	name      string
	anthropic bool
	body      string
	back      string // in the second request
	reasoning string // that people see
	usage     model.Usage
}

func families() []family {
	call := func(extra string) string {
		return pays[:len(pays)-len(`EXTRA}]`)] + extra + `}]`
	}
	return []family{
		{
			name: "DeepSeek", reasoning: "I should pay. Yes.", back: `"reasoning_content":"I should pay. Yes."`,
			body: chunk(`"reasoning_content":"I should pay. "`, "null", "") + chunk(`"reasoning_content":"Yes."`, "null", "") + chunk(call(""), `"tool_calls"`, "") +
				`data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_cache_hit_tokens":64,"completion_tokens_details":{"reasoning_tokens":12}}}` + "\n\ndata: [DONE]\n\n",
			usage: model.Usage{InputTokens: 100, OutputTokens: 20, Known: true, TokenDetails: event.TokenDetails{CachedTokens: 64, ReasoningTokens: 12}},
		},
		{
			name: "Gemini", back: `"extra_content":{"google":{"thought_signature":"c2lnbmVk"}}`,
			body: chunk(call(`,"extra_content":{"google":{"thought_signature":"c2lnbmVk"}}`), `"stop"`, `,"usage":{"prompt_tokens":50,"completion_tokens":10,"total_tokens":90}`) + "data: [DONE]\n\n",

			usage: model.Usage{InputTokens: 50, OutputTokens: 40, Known: true, TokenDetails: event.TokenDetails{ReasoningTokens: 30}},
		},
		{
			name: "OpenRouter", reasoning: "Hm.", back: `"reasoning_details":[{"data":"ZW5j","id":"r","index":0,"type":"reasoning.encrypted"}]`,
			body: ": OPENROUTER PROCESSING\n\n" + chunk(`"reasoning":"Hm.","reasoning_details":[{"type":"reasoning.encrypted","data":"ZW5j","id":"r","index":0}]`, "null", "") + chunk(call(""), `"tool_calls"`, "") + "data: [DONE]\n\n",
		},
		{
			name: "Mistral", reasoning: "Let me see.", back: `"tool_calls"`,
			body: chunk(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"Let me see."}]}]`, "null", "") + chunk(call(""), `"tool_calls"`, "") + "data: [DONE]\n\n",
		},
		{
			name: "Claude", anthropic: true, reasoning: "I read it.", back: `{"type":"thinking","thinking":"I read it.","signature":"c2lnbmVk"}`,
			body: `data: {"type":"message_start","message":{"model":"x","usage":{"input_tokens":5,"cache_read_input_tokens":80,"cache_creation_input_tokens":15,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I read it."}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2lnbmVk"}}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"bank_pay","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"amount\":3}"}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}

data: {"type":"message_stop"}

`,
			usage: model.Usage{InputTokens: 100, OutputTokens: 9, Known: true, TokenDetails: event.TokenDetails{CachedTokens: 80, CacheWriteTokens: 15}},
		},
	}
}

func (f family) model(t *testing.T, r *rig) model.Model {
	t.Helper()
	env := model.Env{}.With("openai", model.Access{BaseURL: r.llm.OpenAIBaseURL()}).With("anthropic", model.Access{Key: "k", BaseURL: r.llm.AnthropicBaseURL()})
	if f.anthropic {
		m, err := anthropic.New("x", env)
		require.NoError(t, err)
		return m
	}
	m, err := openai.New(openai.Standard, "x", env)
	require.NoError(t, err)
	return m
}

// A worker that dies between the two requests of a run with a tool loses nothing of what the provider wants back: the run
// gets its answer from another worker, and the tool runs once.
func TestAThinkingModelIsTakenOver(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
				switch x.N {
				case 1:
					return modeltest.Stream(f.body)(x)
				case 2:
					return scripted.Stream(scripted.Hang())
				}
				return scripted.Stream(scripted.Text("Done."))
			})
			r.release <- struct{}{}
			first, conn := r.workerOf("w1", f.model(t, r), hasty)
			run := r.ask("pay")
			x, err := r.llm.Exchange(r.Ctx, 2)
			require.NoError(t, err)
			require.Contains(t, string(x.Body), f.back)
			conn.NATS().Close()
			first.Stop()
			r.workerOf("w2", f.model(t, r), hasty)
			events := r.until(run, event.RunCompleted, event.RunFailed)
			require.Equal(t, "Done.", last[event.RunCompletedData](t, events).Content)
			require.EqualValues(t, 1, r.pays.Load())
			again, err := r.llm.Exchange(r.Ctx, 3)
			require.NoError(t, err)
			require.Equal(t, string(x.Body), string(again.Body), "the same request")

			shown := ""
			for _, d := range all[event.ReasoningDeltaData](t, events) {
				shown += d.Text
			}
			require.Equal(t, f.reasoning, shown)
			for _, d := range all[event.MessageDeltaData](t, events) {
				require.NotContains(t, d.Text, f.reasoning+"!", "reasoning is no text")
			}
			if f.usage.Known {
				u := all[event.UsageRecordedData](t, events)[0]
				require.Equal(t, f.usage, model.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, TokenDetails: u.TokenDetails, Known: true})
			}
		})
	}
}

// A later run of the session has what the provider wants back with earlier calls, too, and the provider of another server
// does not get it.
func TestEarlierCallsKeepTheirReasoning(t *testing.T) {
	f := families()[0]
	r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N == 1 {
			return modeltest.Stream(f.body)(x)
		}
		return scripted.Stream(scripted.Text("Done."))
	})
	r.release <- struct{}{}
	w, _ := r.workerOf("w1", f.model(t, r), nil)
	r.until(r.ask("pay"), event.RunCompleted)
	r.until(r.ask("and now?"), event.RunCompleted)
	x, err := r.llm.Exchange(r.Ctx, 3)
	require.NoError(t, err)
	require.Contains(t, string(x.Body), f.back)
	require.NoError(t, w.Drain(r.Ctx))

	claude := families()[4]
	r.workerOf("w2", claude.model(t, r), nil)
	r.until(r.ask("and there?"), event.RunCompleted)
	x, err = r.llm.Exchange(r.Ctx, 4)
	require.NoError(t, err)
	require.NotContains(t, string(x.Body), "I should pay", "it stays with the server that sent it")
	require.Contains(t, string(x.Body), "bank_pay")
}

// Answers that are not whole say so to everybody: with the message, in a notice, and at the end of the run.
func TestHowAnAnswerEnded(t *testing.T) {
	for reason, want := range map[string]struct{ stop, code string }{
		"length": {event.StopLength, event.AnswerCut}, "sensitive": {event.StopFiltered, event.AnswerWithheld},
		"refusal": {event.StopRefused, event.AnswerRefused}, "moonstone": {event.StopOther, event.AnswerUnsure}, "stop": {"", ""},
	} {
		t.Run(reason, func(t *testing.T) {
			r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("The answer is forty"), scripted.Finish(reason))))
			r.worker("w1", nil)
			events := r.until(r.ask("hello"), event.RunCompleted)
			require.Equal(t, want.stop, last[event.RunCompletedData](t, events).StopReason)
			notices := all[event.NoticeData](t, events)
			if want.code == "" {
				require.Empty(t, notices)
				return
			}
			require.Len(t, notices, 1)
			require.Equal(t, want.code, notices[0].Code)
			require.Equal(t, runOf(t, events[len(events)-1]), notices[0].RunID)
			said := all[event.MessageCompletedData](t, events)[0]
			require.Equal(t, want.stop, said.StopReason)
			if want.stop == event.StopOther {
				require.Equal(t, "moonstone", said.StopDetail)
				require.Contains(t, notices[0].Message, "moonstone")
			}
		})
	}
}

// A model that says nothing is asked once more, and then the person is told. The next message is
// answered.
func TestAnEmptyAnswer(t *testing.T) {
	blank := scripted.Stream(scripted.Text("\n\n"))
	r := newRig(t, scripted.Sequence(blank, blank, scripted.Stream(scripted.Text("Hello")), blank, scripted.Stream(scripted.Text("Here."))))
	r.worker("w1", soon)
	events := r.until(r.ask("blank"), event.RunFailed)
	require.Equal(t, "MODEL_NO_ANSWER", last[event.RunFailedData](t, events).Code)
	require.Len(t, r.llm.Exchanges(), 2)
	events = r.until(r.ask("next"), event.RunCompleted)
	require.Equal(t, "Hello", last[event.RunCompletedData](t, events).Content)
	x, err := r.llm.Exchange(r.Ctx, 3)
	require.NoError(t, err)
	var body struct {
		Messages []struct{ Role, Content string }
	}
	require.NoError(t, json.Unmarshal(x.Body, &body))
	for i, m := range body.Messages {
		require.NotEmpty(t, m.Content)
		require.True(t, i == 0 || m.Role != body.Messages[i-1].Role, "they take turns")
	}
	events = r.until(r.ask("and?"), event.RunCompleted)
	require.Equal(t, "Here.", last[event.RunCompletedData](t, events).Content)
}

// A call that cannot be made goes back to the model: no person is asked about it, and it never runs.
func TestCallsThatCannotBeMade(t *testing.T) {
	for name, c := range map[string]struct{ arguments, finish, says string }{
		"cut by the limit":       {`{"amount":`, "length", "limit of tokens"},
		"cut before its start":   {``, "length", "limit of tokens"},
		"no JSON":                {`{"amount" 3}`, "tool_calls", "not valid JSON"},
		"not those of the tool":  {`{"amount":"much"}`, "tool_calls", "do not match"},
		"without what is needed": {`{}`, "tool_calls", "do not match"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuled(t, scripted.Sequence(
				scripted.Stream(scripted.Calls(0, scripted.Call{ID: "c", Name: "bank_pay", Arguments: c.arguments}), scripted.Finish(c.finish)),
				scripted.Stream(scripted.Text("I see."))), tools.Rules{Approval: event.ApprovalAlways})
			r.worker("w1", nil)
			events := r.until(r.ask("pay"), event.RunCompleted, event.InputRequested)
			require.Equal(t, "I see.", last[event.RunCompletedData](t, events).Content)
			require.Zero(t, servicetest.Count(events, event.InputRequested))
			require.Zero(t, servicetest.Count(events, event.ToolStarted))
			require.Zero(t, r.pays.Load())
			failed := all[event.ToolFailedData](t, events)
			require.Len(t, failed, 1)
			require.Contains(t, failed[0].Message, c.says)
			x, err := r.llm.Exchange(r.Ctx, 2)
			require.NoError(t, err)
			require.Contains(t, string(x.Body), c.says, "the model can correct it")
		})
	}
}

// A cancelled run leaves what it has done to the next: the model learns which call has had its effect, and of which that is
// not known.
func TestACancelForgetsNoEffects(t *testing.T) {
	r := newRig(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, scripted.Call{ID: "e1", Name: "workspace_read_file", Arguments: `{"path":"notes.md"}`}, scripted.Call{ID: "e2", Name: "bank_pay", Arguments: `{"amount":3}`})),
		scripted.Stream(scripted.Text("I see."))))
	r.worker("w1", nil)
	run := r.ask("both")
	<-r.paying
	r.until(run, event.ToolCompleted)
	r.command(cmd.Cancel, "stop", cmd.CancelRun{})
	r.until(run, event.RunCancelled)
	r.until(r.ask("what did you do?"), event.RunCompleted)
	x, err := r.llm.Exchange(r.Ctx, 2)
	require.NoError(t, err)
	results := map[string]string{}
	for _, m := range x.Prompt.Messages {
		if m.ToolCallID != "" {
			results[m.ToolCallID] = m.Content
		}
	}
	require.Len(t, results, 2)
	require.Contains(t, results["e1"], "buy milk")
	require.Contains(t, results["e2"], "effect unknown")
}
