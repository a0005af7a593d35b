package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func outcomeOf(text string) *outcome {
	return follow(strings.NewReader(text), func() {})
}

func TestOutputNamesTheKillers(t *testing.T) {
	const runs = "\x16=== RUN   TestA\nlog\x16--- PASS: TestA (0.00s)\n\x16=== RUN   TestB\n\x16=== RUN   TestB/one\n--- FAIL: TestPrinted (0.00s)\n" +
		"\x16=== NAME  TestB\nlog of B\n\x16=== RUN   TestC\n\x16=== PAUSE TestC\n\x16=== NAME  TestB\n"
	o := outcomeOf(runs + "\x16--- FAIL: TestB/one (0.00s)\n\x16--- FAIL: TestB (0.00s)\nFAIL\n")
	require.Equal(t, []string{"TestB/one", "TestB"}, o.killers())
	require.Equal(t, []string{"TestB"}, o.tests())
	require.Equal(t, "--- FAIL: TestPrinted (0.00s)", o.tail())

	o = outcomeOf(runs + "panic: no\n")
	require.Equal(t, []string{"TestB (had not ended)"}, o.killers())
	require.Equal(t, []string{"TestB"}, topLevel(o.killers()))
	require.Equal(t, "log\n--- FAIL: TestPrinted (0.00s)\nlog of B\npanic: no", strings.TrimSpace(o.tail()))
	require.False(t, o.timedOut)

	o = outcomeOf(runs + "panic: test timed out after 1s\n")
	require.True(t, o.timedOut)
	o = outcomeOf("goleak: Errors on successful test run\n")
	require.Equal(t, []string{"TestMain"}, o.killers())
	require.Empty(t, topLevel(o.killers()))
	require.False(t, o.isWeather())
	require.True(t, outcomeOf("listen: address already in use\n").isWeather())
}

// script plays outcomes: each is what fails, "" for nothing, and notes which tests were asked for.
type script struct {
	plays []string
	asked []string
}

func (s *script) run(_ context.Context, tests []string) (*outcome, error) {
	s.asked = append(s.asked, strings.Join(tests, " "))
	play := s.plays[0]
	s.plays = s.plays[1:]
	switch play {
	case "":
		return &outcome{passed: true}, nil
	case "late":
		return &outcome{timedOut: true, open: []string{"TestLate"}}, nil
	case "end":
		return nil, errors.New("end")
	case "TestMain":
		return &outcome{}, nil
	}
	return &outcome{failed: []string{play}}, nil
}

func TestAFailureHasToComeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		plays, first, asked []string
		verdict             verdict
		killer              string
	}{
		"survivor":           {plays: []string{""}, asked: []string{""}, verdict: survived},
		"killed":             {plays: []string{"TestA", "TestA"}, asked: []string{"", "TestA"}, verdict: killed, killer: "TestA"},
		"flaky":              {plays: []string{"TestA", "", ""}, asked: []string{"", "TestA", ""}, verdict: survived},
		"killed in company":  {plays: []string{"TestA", "", "TestB"}, asked: []string{"", "TestA", ""}, verdict: killed, killer: "TestB"},
		"timed out":          {plays: []string{"late"}, asked: []string{""}, verdict: timedOut, killer: "TestLate (had not ended)"},
		"killed as before":   {plays: []string{"TestA", "TestA"}, first: []string{"TestA"}, asked: []string{"TestA", "TestA"}, verdict: killed, killer: "TestA"},
		"former killer gone": {plays: []string{"", "TestB", "TestB"}, first: []string{"TestA"}, asked: []string{"TestA", "", "TestB"}, verdict: killed, killer: "TestB"},
		"leak":               {plays: []string{"TestMain", "TestMain"}, asked: []string{"", ""}, verdict: killed, killer: "TestMain"},
	} {
		s := &script{plays: c.plays}
		j, err := judge(t.Context(), s.run, c.first)
		require.NoError(t, err, name)
		require.Equal(t, c.verdict, j.Verdict, name)
		require.Equal(t, c.killer, strings.Join(j.Tests, " "), name)
		require.Equal(t, c.asked, s.asked, name)
	}
	for _, plays := range [][]string{{"end"}, {"TestA", "end"}, {"TestA", "", "end"}} {
		_, err := judge(t.Context(), (&script{plays: plays}).run, nil)
		require.Error(t, err)
	}
}
