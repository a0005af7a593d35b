package chat

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal/terminaltest"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/orbit"
)

func ask(t testing.TB, opt Options, stream bool) (string, error) {
	t.Helper()
	var out, remarks bytes.Buffer
	err := Ask(bounded(t), opt, "q?", nil, terminal.NewScreen(&out, &remarks), stream, nil)
	require.Empty(t, remarks.String(), "nothing but answers without a terminal")
	return out.String(), err
}

func TestAskPrintsTheAnswerOnly(t *testing.T) {
	url := serve(t, func(p *peer) {
		require.Equal(p.t, "true", p.query.Get("deltas"))
		require.Equal(p.t, "Bearer k3y", p.token)
		p.greet("s1", 0)
		m := p.read()
		require.Equal(p.t, "user_message", m["type"])
		require.Equal(p.t, "q?", m["content"])
		require.NotEmpty(p.t, m["id"])
		p.echo(3, "e1", "q?")
		p.delta(5, "e1", "m1", "Let me look.")
		p.send(orbit.ToolCalled, 7, "e1", orbit.ToolCalledData{ToolName: "t", Arguments: json.RawMessage(`{"a":1}`)})
		p.send(orbit.ToolExecuting, 8, "e1", orbit.ToolExecutingData{ToolName: "t", Status: orbit.StatusExecuting})
		p.send(orbit.ToolResult, 9, "e1", orbit.ToolResultData{ToolName: "t", Status: orbit.StatusCompleted, Result: "r"})
		p.delta(10, "e1", "m2", "Forty-")
		p.delta(11, "e1", "m2", "two")
		p.answer(13, "e1", "Forty-two")
		p.until()
	})
	out, err := ask(t, Options{URL: url, Token: "k3y"}, false)
	require.NoError(t, err)
	require.Equal(t, "Forty-two\n", out)
}

func TestAskStreamsEachTextOnce(t *testing.T) {
	url := serve(t, func(p *peer) {
		p.greet("s1", 0)
		p.read()
		p.echo(3, "e1", "q?")
		p.delta(5, "e1", "m1", "Let me ")
		p.delta(6, "e1", "m1", "look.")
		p.send(orbit.ToolCalled, 7, "e1", orbit.ToolCalledData{ToolName: "t", Arguments: json.RawMessage(`{}`)})
		p.delta(10, "e1", "m2", "half an ans")
		p.send(orbit.DeltaDiscarded, 11, "e1", orbit.DiscardedData{MessageID: "m2"})
		p.delta(12, "e1", "m3", "Forty-")
		p.delta(13, "e1", "m3", "two")
		p.answer(14, "e1", "Forty-two")
		p.until()
	})
	out, err := ask(t, Options{URL: url}, true)
	require.NoError(t, err)
	require.Equal(t, "Let me look.\nhalf an ans\nForty-two\n", out)
}

func TestAskComesBackAfterALostConnection(t *testing.T) {
	url := serve(t,
		func(p *peer) {
			p.greet("s1", 0)
			p.read()
			p.echo(3, "e1", "q?")
			p.delta(5, "e1", "m1", "one ")
			p.leave(1012)
		},
		func(p *peer) {
			require.Equal(p.t, "s1", p.query.Get("session"))
			require.Equal(p.t, "5", p.query.Get("after"))
			p.greet("s1", 5)
			p.delta(6, "e1", "m1", "two ")
			_ = p.conn.CloseNow() // 1006
		},
		func(p *peer) {
			require.Equal(p.t, "6", p.query.Get("after"))
			p.greet("s1", 6)
			p.delta(7, "e1", "m1", "three")
			p.answer(9, "e1", "one two three")
			p.until()
		})
	out, err := ask(t, Options{URL: url}, true)
	require.NoError(t, err)
	require.Equal(t, "one two three\n", out)
}

func TestAskFailsWithTheServersWords(t *testing.T) {
	for name, script := range map[string]func(p *peer){
		"error of the run": func(p *peer) {
			p.greet("s", 0)
			p.read()
			p.echo(3, "e1", "q?")
			p.send(orbit.Error, 4, "other", orbit.ErrorData{Message: "not ours"})
			p.send(orbit.Error, 5, "e1", orbit.ErrorData{Message: "model\x1b[2J failed", Code: "MODEL_FAILED"})
			p.until()
		},
		"refused message": func(p *peer) {
			p.greet("s", 0)
			p.read()
			p.send(orbit.Error, 0, "", orbit.ErrorData{Message: "history", Code: "HISTORY_EXPIRED", FirstSeq: 7})
			p.send(orbit.Error, 3, "", orbit.ErrorData{Message: "model failed", Code: "MODEL_FAILED"})
			p.until()
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := ask(t, Options{URL: serve(t, script)}, false)
			require.ErrorIs(t, err, ErrNoAnswer)
			require.EqualError(t, err, "no answer: model failed [MODEL_FAILED]")
			require.Empty(t, out)
		})
	}
}

func TestAskGivesUpWhereComingBackIsPointless(t *testing.T) {
	_, err := ask(t, Options{URL: serve(t, func(p *peer) { p.greet("s", 0); p.leave(4404) })}, false)
	require.ErrorContains(t, err, "4404")
	_, err = ask(t, Options{URL: serve(t)}, false)
	require.ErrorContains(t, err, "HTTP 404")
	_, err = ask(t, Options{URL: "http://x"}, false)
	require.Error(t, err)
	_, err = ask(t, Options{URL: "ws://" + freeport.Addr(t) + "/ws"}, false)
	require.ErrorContains(t, err, "no server answers at")
}

func TestServerTextCannotSteerTheTerminal(t *testing.T) {
	evil := "\x1b]0;owned\a\x1b[2Jok\u202e"
	var out, remarks bytes.Buffer
	screen := terminal.NewScreen(&out, &remarks)
	v := NewView(screen, true)
	show := func(kind string, data any) {
		b, err := json.Marshal(data)
		require.NoError(t, err)
		v.Show(sdk.Frame{Frame: orbit.Frame[json.RawMessage]{Type: kind, Data: b}})
	}
	show(orbit.AgentDelta, orbit.DeltaData{MessageID: "m", Text: "a\x1b]0;ow"})
	show(orbit.AgentDelta, orbit.DeltaData{MessageID: "m", Text: "ned\ab"})
	show(orbit.ToolCalled, orbit.ToolCalledData{ToolName: evil, Arguments: json.RawMessage(`{}`)})
	show(orbit.AgentResponse, orbit.ResponseData{Message: evil})
	show(orbit.Error, orbit.ErrorData{Message: evil, Code: evil})
	show(orbit.AgentResponse, json.RawMessage(`"no object"`))
	require.Equal(t, "ab\nok\n", out.String())
	require.Equal(t, "✗ ok [ok]\n", remarks.String())
}

func TestRawFramesAreTheServersAndHarmless(t *testing.T) {
	url := serve(t, func(p *peer) {
		p.greet("s", 0)
		p.read()
		p.echo(1, "e", "q?")
		p.answer(3, "e", "a\u009b\u202eb")
		p.until()
	})
	var out bytes.Buffer
	screen := terminal.NewScreen(io.Discard, io.Discard)
	require.NoError(t, Ask(bounded(t), Options{URL: url}, "q?", nil, screen, false, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 5)
	require.Contains(t, lines[4], `a\u009b\u202eb`)
	var f sdk.Frame
	require.NoError(t, json.Unmarshal([]byte(lines[4]), &f.Frame))
	require.Equal(t, "a\u009b\u202eb", sdk.As[orbit.ResponseData](f).Message)
}

func TestTalkHoldsAConversation(t *testing.T) {
	url := serve(t, func(p *peer) {
		p.greet("s-7", 0)
		for seq, text := range []string{"first", "second"} {
			require.Equal(p.t, text, p.read()["content"])
			p.echo(uint64(10*seq+1), text, text)
			p.answer(uint64(10*seq+5), text, "answer to "+text)
		}
		p.until()
	})
	var out bytes.Buffer
	lines := Piped(strings.NewReader("first\n\n/session\nsecond\n/help\n/quit\nnever read\n"))
	err := Talk(bounded(t), Options{URL: url}, lines, terminal.NewScreen(&out, io.Discard), false, nil)
	require.NoError(t, err)
	require.Equal(t, "answer to first\ns-7\nanswer to second\n"+Help+"\n", out.String())
}

func TestTalkStopsAtAFailureWithoutATerminal(t *testing.T) {
	url := serve(t, func(p *peer) {
		p.greet("s", 0)
		p.read()
		p.echo(1, "e", "q")
		p.send(orbit.Error, 3, "e", orbit.ErrorData{Message: "no"})
		p.until()
	})
	var remarks bytes.Buffer
	err := Talk(bounded(t), Options{URL: url}, Piped(strings.NewReader("q\nr\n")), terminal.NewScreen(io.Discard, &remarks), false, nil)
	require.ErrorIs(t, err, ErrNoAnswer)
	require.Equal(t, "✗ no\n", remarks.String())
}

func TestAnInterruptStopsTheAnswerAndTheNextOneLeaves(t *testing.T) {
	interrupts := make(chan os.Signal)
	url := serve(t, func(p *peer) {
		p.greet("s", 0)
		p.read()
		p.echo(1, "e", "q")
		interrupts <- os.Interrupt
		require.Equal(p.t, "cancel", p.read()["type"])
		interrupts <- os.Interrupt
		p.until()
	})
	err := Talk(bounded(t), Options{URL: url}, Piped(strings.NewReader("q\nr\n")), terminal.NewScreen(io.Discard, io.Discard), false, interrupts)
	require.NoError(t, err)
}

// TestADroppedTextHasItsTrueReason: one without a reason was not lost by a worker; its run may have ended.
func TestADroppedTextHasItsTrueReason(t *testing.T) {
	require.NotContains(t, Discarded(""), "worker")
	require.Contains(t, Discarded("worker_lost"), "worker was lost")
	require.Contains(t, Discarded("the request failed"), "the request failed")
}

// TestAskAnswersQuestions with the lines of its input: y allows, and without a line the question is for others.
func TestAskAnswersQuestions(t *testing.T) {
	pays := func(p *peer) {
		p.greet("s1", 0)
		p.read()
		p.echo(1, "e1", "q?")
		p.send(orbit.AgentThinking, 3, "e1", orbit.ThoughtData{Message: "?", Question: &orbit.Question{ID: "q", Scope: "tool", Tool: "bank_pay", Arguments: json.RawMessage(`{}`)}})
	}
	for name, lines := range map[string]Lines{"piped": Piped(strings.NewReader("y\n")), "typed": Typed(strings.NewReader("y\n"))} {
		url := serve(t, func(p *peer) {
			pays(p)
			got := p.read()
			require.Equal(p.t, "q", got["question_id"], name)
			require.Equal(p.t, true, got["approved"], name)
			p.answer(9, "e1", "paid")
			p.until()
		})
		var out, remarks bytes.Buffer
		require.NoError(t, Ask(bounded(t), Options{URL: url}, "q?", lines, terminal.NewScreen(&out, &remarks), false, nil))
		require.Contains(t, out.String(), "paid")
		require.NotContains(t, remarks.String(), elsewhere)
	}
	for name, lines := range map[string]Lines{"no input": nil, "its end": Piped(strings.NewReader(""))} {
		var out bytes.Buffer
		remarks := terminaltest.NewWatched(elsewhere)
		url := serve(t, func(p *peer) {
			pays(p)
			<-remarks.Seen()
			p.answer(9, "e1", "paid")
			p.until()
		})
		require.NoError(t, Ask(bounded(t), Options{URL: url}, "q?", lines, terminal.NewScreen(&out, remarks), false, nil), name)
		require.Contains(t, out.String(), "paid", name)
	}
}
