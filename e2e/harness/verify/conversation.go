package verify

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// Question is one that the demo model answers with a plan and tools.
const Question = "Which files are in the workspace, and what does notes.md say?"

// Conversation is a client that asks one question after the other in one session.
type Conversation struct {
	*client.MyAgent
	t       testing.TB
	opt     sdk.Options
	sent    []string
	answers atomic.Int64
}

// Converse opens a session, or shows the one that the options name, until the test ends.
func Converse(t testing.TB, opt sdk.Options) *Conversation {
	t.Helper()
	c := &Conversation{MyAgent: client.OpenMyAgent(t, opt), t: t, opt: opt}
	if opt.Session == "" {
		c.Until("the session", func(f sdk.Frame) bool { return f.Event == myagent.AgentSessionCreated })
	}
	return c
}

// Ask asks questions until the context ends; the last question is answered, too. Any goroutine may call it.
func (c *Conversation) Ask(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.ask(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// Once asks one question and waits for its answer.
func (c *Conversation) Once() {
	c.t.Helper()
	require.NoError(c.t, c.ask(context.Background()))
}

func (c *Conversation) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*process.MaxWait)
	defer cancel()
	id := c.Message(Question, nil)
	c.sent = append(c.sent, id)
	if _, err := c.Await(ctx, client.EndOf(id)); err != nil {
		return fmt.Errorf("message %d of session %s: %w", len(c.sent), c.Session(), err)
	}
	c.answers.Add(1)
	return nil
}

// Answers returns the least number of answers that one of the conversations has got.
func Answers(all []*Conversation) int64 {
	least := all[0].answers.Load()
	for _, c := range all[1:] {
		least = min(least, c.answers.Load())
	}
	return least
}

// Further waits until each conversation has got another answer.
func Further(t testing.TB, what string, all []*Conversation) {
	t.Helper()
	before := Answers(all)
	process.Eventually(t, what, func() bool { return Answers(all) > before })
}

// Conversations requires that each client has seen its session whole, once and in order, as a viewer sees it that
// connects now, and that each question has one answer. It returns the figures.
func Conversations(t testing.TB, all []*Conversation) string {
	t.Helper()
	events, messages, losses := 0, 0, 0
	for i, c := range all {
		opt := c.opt
		opt.Session = c.Session()
		late := client.OpenMyAgent(t, opt)
		late.UntilSeq(c.Seq())
		frames := c.Frames()
		for j, f := range frames {
			require.EqualValues(t, j+1, f.Seq, "session %d", i)
		}
		require.True(t, slices.Equal(c.Raw(), late.Raw()[:len(frames)]), "session %d: a late viewer sees other frames", i)
		for _, id := range c.sent {
			require.Equal(t, []int{1, 1}, questionAndAnswers(frames, id), "message %s of session %d", id, i)
		}
		lost, gaps := c.Losses()
		require.Empty(t, gaps)
		events, messages, losses = events+len(frames), messages+len(c.sent), losses+lost
	}
	return fmt.Sprintf("%d clients, %d connections lost: %d events, 0 lost, 0 doubled, 0 reordered; %d messages, each answered once",
		len(all), losses, events, messages)
}

// questionAndAnswers counts the echoes of a message and the ends of its run.
func questionAndAnswers(frames []sdk.Frame, id string) []int {
	counts := []int{0, 0}
	ends := client.EndOf(id)
	for _, f := range frames {
		if f.Event == myagent.UserMessage && f.Meta().MessageID == id {
			counts[0]++
		}
		if ends(f) {
			counts[1]++
		}
	}
	return counts
}
