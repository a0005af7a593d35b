package chat

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/console"
	"github.com/waggle-dev/waggle/cmd/waggle/console/consoletest"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// sit puts a person in front of a conversation. ended tells how it ended.
func sit(t *testing.T, opt Options) (x *consoletest.Terminal, ended <-chan error) {
	t.Helper()
	x = consoletest.Open(t, 24, 100)
	interrupts, over := make(chan os.Signal, 1), make(chan error, 1)
	screen := terminal.NewScreen(x.TTY, x.TTY)
	lines := console.Open(console.Options{In: x.TTY, Out: x.TTY, Environ: consoletest.Environ(), Interrupts: interrupts, Screen: screen})
	done, ctx := make(chan struct{}), bounded(t)
	go func() { defer close(done); over <- Talk(ctx, opt, lines, screen, true, interrupts) }()
	t.Cleanup(func() { <-done })
	return x, over
}

func TestAPersonTalks(t *testing.T) {
	typed := make(chan struct{})
	url := serve(t,
		func(p *peer) {
			p.greet("s-1", 0)
			require.Equal(p.t, "one\ntwo", p.read()["content"])
			p.echo(1, "e1", "one\ntwo")
			p.delta(3, "e1", "m1", "Forty-")
			<-typed
			p.delta(4, "e1", "m1", "**two**\n\n- a list")
			p.answer(5, "e1", "Forty-**two**\n\n- a list")
			require.Equal(p.t, "and more", p.read()["content"])
			p.echo(6, "e2", "and more")
			require.Equal(p.t, "cancel", p.read()["type"])
			p.send(orbit.Error, 8, "e2", orbit.ErrorData{Message: "Stopped."})
			p.until()
		},
		func(p *peer) {
			require.Empty(p.t, p.query.Get("session"))
			p.greet("s-2", 0)
			p.until()
		})
	x, ended := sit(t, Options{URL: url, Model: "demo"})
	x.Wait("model demo, session s-1; /help shows the commands\n\n›")
	x.Submit(consoletest.Paste("one\ntwo"), "one")
	x.Wait("› one\n  two\nForty-")
	x.Type("and ")
	x.Wait("Forty-\n\n› and")
	close(typed)
	x.Wait("Forty-two\n\n• a list\n\n› and") // Markdown, as it is meant
	x.Submit("more", "and more")
	x.Wait("› and more\n")
	x.Wait("thinking")
	x.Type(consoletest.CtrlC)
	x.Wait("✗ Stopped.")
	x.Submit("/foo", "/foo")
	x.Wait("/foo does not exist; /help shows the commands")
	x.Submit("/new", "/new")
	x.Wait("waggle chat --session s-1 continues this session")
	x.Wait("model demo, session s-2")
	x.Type(consoletest.CtrlC)
	require.NoError(t, <-ended)
}

func TestNoServerRuns(t *testing.T) {
	_, ended := sit(t, Options{URL: "ws://127.0.0.1:1/ws"})
	require.EqualError(t, <-ended, `no server answers at ws://127.0.0.1:1/ws; start one with "waggle up" (make run), or name another with --url`)
}

// TestAPersonAnswers: a question about a tool shows its whole arguments; y allows, anything else refuses and is the reason.
func TestAPersonAnswers(t *testing.T) {
	url := serve(t, func(p *peer) {
		p.greet("s-1", 0)
		p.read()
		p.echo(1, "e1", "pay")
		for seq, want := range []struct {
			approved bool
			feedback any
		}{{true, nil}, {false, "too much"}} {
			p.send(orbit.AgentThinking, uint64(3+2*seq), "e1", orbit.ThoughtData{Message: "?", Question: &orbit.Question{
				ID: "q", Scope: "tool", Tool: "bank_pay", Arguments: fmt.Appendf(nil, `{"amount":%d}`, 5+seq),
			}})
			got := p.read()
			require.Equal(p.t, "q", got["question_id"])
			require.Equal(p.t, want.approved, got["approved"])
			require.Equal(p.t, want.feedback, got["feedback"])
			p.send(orbit.AgentThinking, uint64(4+2*seq), "e1", orbit.ThoughtData{Message: "answered"})
		}
		p.answer(9, "e1", "done")
		p.until()
	})
	x, ended := sit(t, Options{URL: url})
	x.Wait("session s-1")
	x.Submit("pay", "pay")
	asked := func(amount int) {
		want := regexp.QuoteMeta(fmt.Sprintf("May bank_pay be called with {\"amount\":%d}?\n%s\n", amount, howToAnswer)) + `\S waiting for an answer\n\n›$`
		x.Until(want, func(rows []string) bool { return regexp.MustCompile(want).MatchString(strings.Join(rows, "\n")) })
	}
	asked(5)
	x.Submit("y", "y")
	asked(6)
	x.Submit("too much", "too much")
	x.Wait("done")
	x.Ready()
	x.Type(consoletest.CtrlC)
	require.NoError(t, <-ended)
}

// TestAPersonSeesWhatTheModelThinks folded into a line before the text, that another model is asked, and that the answer is cut.
func TestAPersonSeesWhatTheModelThinks(t *testing.T) {
	url := serve(t, func(p *peer) {
		p.greet("s-1", 0)
		p.read()
		p.echo(1, "e1", "count")
		p.send(orbit.ThinkingDelta, 2, "e1", orbit.DeltaData{MessageID: "m1", Text: "Hm, "})
		p.send(orbit.DeltaDiscarded, 3, "e1", orbit.DiscardedData{MessageID: "m1", Reason: "the request to the model failed"})
		p.send(orbit.AgentThinking, 4, "e1", orbit.ThoughtData{Message: "The model is overloaded. Asking the model b in 0 s (2 of 7).", Code: "MODEL_BUSY"})
		p.send(orbit.ThinkingDelta, 5, "e1", orbit.DeltaData{MessageID: "m2", Text: "Ten\nand "})
		p.send(orbit.ThinkingDelta, 6, "e1", orbit.DeltaData{MessageID: "m2", Text: "two."})
		p.delta(7, "e1", "m2", "Twelve")
		p.send(orbit.AgentThinking, 8, "e1", orbit.ThoughtData{Message: "Ten\nand two.", MessageID: "m2"})
		p.send(orbit.AgentThinking, 9, "e1", orbit.ThoughtData{Message: "The answer is cut.", Code: event.AnswerCut})
		p.send(orbit.AgentResponse, 10, "e1", orbit.ResponseData{Message: "Twelve", ExecutionCompleted: true, StopReason: event.StopLength})
		p.until()
	})
	x, ended := sit(t, Options{URL: url})
	x.Wait("session s-1")
	x.Submit("count", "count")
	x.Wait("Asking the model b in 0 s (2 of 7).\n✻ Ten and two.\nTwelve\nThe answer is cut: it reached the limit of tokens.")
	x.Ready()
	x.Type(consoletest.CtrlC)
	require.NoError(t, <-ended)
}
