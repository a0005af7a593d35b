package fold_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// twoTurns is a log of two questions with answers. The first answer was begun twice, because its worker was lost.
func twoTurns() []event.Data {
	return append(begun(),
		event.MessageStartedData{MessageID: "a0", RunID: "r1", Attempt: 1},
		event.MessageDeltaData{MessageID: "a0", RunID: "r1", Attempt: 1, Text: "w1 w2", Begins: true},
		event.MessageDiscardedData{MessageID: "a0", RunID: "r1", Attempt: 2},
		event.MessageCompletedData{MessageID: "a1", RunID: "r1", Content: "done"},
		event.RunCompletedData{RunID: "r1", MessageID: "a1", Content: "done"},
		event.MessageReceivedData{MessageID: "m2", RunID: "r2", Content: "again"},
		event.RunStartedData{RunID: "r2", MessageID: "m2", Content: "again"},
		event.MessageCompletedData{MessageID: "a2", RunID: "r2", Content: "done again"},
		event.RunCompletedData{RunID: "r2", MessageID: "a2", Content: "done again"},
	)
}

// A client that has other messages than the thread is given those of the thread, whatever the difference is.
func TestAClientWithOtherMessages(t *testing.T) {
	thread := folded(logOf(t, twoTurns()...))
	said := func(id, role, text string) string {
		return fmt.Sprintf(`{"id":%q,"role":%q,"content":%q},`, id, role, text)
	}
	u1, a1, u2, a2 := said("m1", "user", "do it"), said("a1", "assistant", "done"), said("m2", "user", "again"), said("a2", "assistant", "done again")
	for name, c := range map[string]struct {
		has     string
		differs bool
	}{
		"the same":                        {u1 + a1 + u2 + a2, false},
		"nothing":                         {"", false},
		"the newest turn only":            {u2 + a2, false},
		"brought a conversation":          {said("b1", "user", "hi") + said("b2", "assistant", "hello") + u1 + a1 + u2 + a2, false},
		"own ids of answers":              {u1 + said("x1", "assistant", "done") + u2 + said("x2", "assistant", "done again"), false},
		"a message that calls":            {u1 + a1 + `{"id":"c","role":"assistant","toolCalls":[]},` + u2 + a2, false},
		"another text":                    {u1 + said("a1", "assistant", "not done") + u2 + a2, true},
		"lacks the second turn":           {u1 + a1, true},
		"lacks an answer":                 {u1 + u2 + a2, true},
		"lacks the newest answer":         {u1 + a1 + u2, true},
		"an alien answer":                 {u1 + a1 + u2 + a2 + said("alien", "assistant", "I am here"), true},
		"a string that was withdrawn":     {u1 + said("a0", "assistant", "w1 w2") + u2 + a2, true},
		"the same beside the true answer": {u1 + said("a0", "assistant", "w1 w2") + a1 + u2 + a2, true},
	} {
		m, err := thread.Means(request(t, `{"messages":[`+c.has+`{"id":"x","role":"user","content":"more"}]}`))
		require.NoError(t, err, name)
		require.Equal(t, fold.Speak, m.Kind, name)
		require.Equal(t, c.differs, m.Edited, name)
	}
}
