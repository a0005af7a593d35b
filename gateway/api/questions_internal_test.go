package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog/index"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// TestAnExpiredQuestionIsNotOpen, also if no event says yet that it has expired.
func TestAnExpiredQuestionIsNotOpen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	open := questionFilter{state: wire.QuestionOpen}
	for name, c := range map[string]struct {
		filter questionFilter
		wire.Question
		elsewhere, passes bool
	}{
		"without a limit":           {filter: open, Question: wire.Question{State: wire.QuestionOpen}, passes: true},
		"in time":                   {filter: open, Question: wire.Question{State: wire.QuestionOpen, ExpiresAt: now.Add(time.Second)}, passes: true},
		"expired":                   {filter: open, Question: wire.Question{State: wire.QuestionOpen, ExpiresAt: now.Add(-time.Second)}},
		"answered before its limit": {filter: questionFilter{state: wire.QuestionAnswered}, Question: wire.Question{State: wire.QuestionAnswered, ExpiresAt: now.Add(-time.Hour)}, passes: true},
		"of another state":          {filter: open, Question: wire.Question{State: wire.QuestionWithdrawn}},
		"of a job":                  {filter: open, Question: wire.Question{State: wire.QuestionOpen}, elsewhere: true},
		"of a task": {
			filter:   questionFilter{state: wire.QuestionOpen, kind: string(id.KindTask)},
			Question: wire.Question{State: wire.QuestionOpen, Kind: string(id.KindTask)}, elsewhere: true, passes: true,
		},
	} {
		q := index.StoredQuestion{Question: index.Question{Question: c.Question, Elsewhere: c.elsewhere}}
		require.Equal(t, c.passes, c.filter.passes(&q, now), name)
	}
}
