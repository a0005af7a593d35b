package top

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// TestThePictureFitsTheTerminal, whatever its size, and whatever texts, keys and failures come: hostile texts steer nothing.
func TestThePictureFitsTheTerminal(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", "plain", "\x1b[2J\x1b[31mred", "日本語のテキスト", "a\nb\tc", "\u202eright to left", strings.Repeat("long ", 60), "\x9b5n", "e\u0301\u0301\u0301",
	}))
	question := rapid.Custom(func(t *rapid.T) api.Question {
		raw, err := json.Marshal(text.Draw(t, "message"))
		require.NoError(t, err)
		return api.Question{
			ID: text.Draw(t, "id"), Scope: rapid.SampledFrom([]string{event.ScopePlan, event.ScopeTool, event.ScopeClientTool, event.ScopeBudget, api.ScopeAgent}).Draw(t, "scope"),
			Title: text.Draw(t, "title"), Tool: text.Draw(t, "tool"), Arguments: raw, Message: raw, Digest: text.Draw(t, "digest"),
			Steps: []event.Step{{ID: text.Draw(t, "step"), Title: text.Draw(t, "step's title")}}, Cut: rapid.Bool().Draw(t, "cut"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t.Context(), Options{URL: text.Draw(t, "url")})
		m.Update(tea.WindowSizeMsg{Width: rapid.IntRange(20, 200).Draw(t, "width"), Height: rapid.IntRange(8, 60).Draw(t, "height")})
		raw, err := json.Marshal(api.QuestionList{Questions: rapid.SliceOfN(question, 0, 12).Draw(t, "questions")})
		require.NoError(t, err)
		rows, err := readQuestions(raw, time.Now())
		require.NoError(t, err)
		m.Update(loaded{room: questions, rows: rows, at: time.Now()})
		if rapid.Bool().Draw(t, "failed") {
			m.Update(loaded{room: rapid.IntRange(0, 1).Draw(t, "room"), err: errors.New(text.Draw(t, "error"))})
		}
		for _, key := range rapid.SliceOf(rapid.SampledFrom([]rune("12jkGgyNafn]["))).Draw(t, "keys") {
			m.Update(tea.KeyPressMsg{Code: key, Text: string(key)})
		}
		lines := strings.Split(m.View().Content, "\n")
		require.Len(t, lines, m.height)
		for _, l := range lines {
			require.LessOrEqual(t, ansi.StringWidth(l), m.width, "%q", l)
			require.NotContains(t, ansi.Strip(l), "\x1b")
		}
	})
}

// TestAnAnswerHasItsText in the member that the scope takes it from.
func TestAnAnswerHasItsText(t *testing.T) {
	t.Parallel()
	agent := &api.Question{Scope: api.ScopeAgent}
	require.JSONEq(t, `"as you like"`, string(worded(agent, api.DecisionAnswer, "as you like").Message))
	require.JSONEq(t, `{"days":3}`, string(worded(agent, api.DecisionAnswer, `{"days":3}`).Message))
	require.Equal(t, "too dear", worded(&api.Question{Scope: event.ScopeTool}, event.DecisionReject, "too dear").Feedback)
	require.Equal(t, "42", *worded(&api.Question{Scope: event.ScopeClientTool}, event.DecisionApprove, "42").Result)
}

// noting is a gateway that notes which sessions it is asked for.
type noting struct{ last url.Values }

func (g *noting) Call(context.Context, string, []byte, ...string) (json.RawMessage, error) {
	return nil, errors.New("not here")
}

func (g *noting) Get(_ context.Context, q url.Values, _ ...string) (json.RawMessage, error) {
	g.last = q
	return json.RawMessage(`{"sessions":[{"session_id":"s1","state":"` + q.Get("state") + `","question":"only ` + q.Get("state") + `"}]}`), nil
}

// TestTheListIsFiltered by state with one key, and an answer for the filter before is not shown.
func TestTheListIsFiltered(t *testing.T) {
	t.Parallel()
	g := &noting{}
	m := newModel(t.Context(), Options{Gateway: g})
	m.Update(m.read(sessions)())
	late := m.read(sessions)
	for _, want := range append(states[1:], "") {
		m.Update(tea.KeyPressMsg{Code: 'f', Text: "f"})
		m.Update(late())
		require.NotContains(t, m.View().Content, "s1  ")
		late = m.read(sessions)
		m.Update(late())
		require.Equal(t, want, g.last.Get("state"))
		require.Contains(t, m.View().Content, "only "+want)
		if want != "" {
			require.Contains(t, m.View().Content, "[1 Sessions: "+want+"]")
		}
	}
}
