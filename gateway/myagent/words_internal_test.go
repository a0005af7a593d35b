package myagent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// TestEveryErrorHasATextInChinese, whose first sentence is the problem, and every notice about an answer.
func TestEveryErrorHasATextInChinese(t *testing.T) {
	zh, en := &inChinese, &inEnglish
	for _, entry := range fault.Catalogue {
		code, text := string(entry.Code), zh.people(string(entry.Code), entry.Message)
		require.True(t, strings.HasSuffix(text, "。"), "%s: %s", code, text)
		require.NotEqual(t, entry.Message, text)
		problem := zh.problem(code, entry.Message)
		require.True(t, strings.HasPrefix(text, problem), "%s: %s", code, problem)
		require.Equal(t, 1, strings.Count(problem, "。"), "%s: %s", code, problem)
		require.Equal(t, problem, zh.problem(code, entry.Problem()))
		require.Equal(t, entry.Message, en.people(code, entry.Message))
		require.Equal(t, entry.Problem(), en.problem(code, entry.Message))
		require.Equal(t, "A text of its own.", zh.people(code, "A text of its own."))
	}
	for _, reason := range []string{event.StopLength, event.StopFiltered, event.StopRefused, event.StopOther} {
		code, _, _ := event.AnswerNotice(reason, "")
		require.NotEmpty(t, inChinese.notices[code], reason)
	}
}

// TestWhatBecameOfARequestIsSaidInChinese: the notices that answer a request about a task or a plan.
func TestWhatBecameOfARequestIsSaidInChinese(t *testing.T) {
	for text, want := range map[string]string{"Done.": "已完成", "Another plan is being made.": "正在重新规划", "Something else.": "Something else."} {
		d := event.NoticeData{Level: "info", Code: "ACTION", Message: text, Action: "cancel_step"}
		require.Equal(t, want, notice(&Codec{words: &inChinese}, event.Event{}, d).ShowContent)
		require.Equal(t, text, notice(&Codec{words: &inEnglish}, event.Event{}, d).ShowContent)
	}
}
