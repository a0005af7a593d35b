package conversation_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

var update = flag.Bool("update", false, "write what is missing in testdata")

// histories make the logs in testdata that every version of the fold is tried on. They are
// made once and kept: later decisions may differ, the recorded ones do not.
var histories = map[string]func() []event.Event{
	"plans":  func() []event.Event { return plans(1) },
	"repair": func() []event.Event { return plans(2) },
	"member": aMember,
	"chat":   aChat,
	"asking": anAgentAsks,
	"thinks": aModelThinks,
	"edited": aChange,
}

// Processes with the same FoldVersion share snapshots, so the same log must become the same
// state, at each of its events, for as long as the version stays.
func TestAFoldOfAnotherKindHasAnotherVersion(t *testing.T) {
	file := filepath.Join("testdata", fmt.Sprintf("fold-v%d.txt", conversation.FoldVersion))
	want := sums(t, file)
	for name, history := range histories {
		log := filepath.Join("testdata", name+".jsonl")
		if _, err := os.Stat(log); err != nil && *update {
			record(t, log, history())
		}
		got := foldSum(t, log)
		if want[name] == "" && *update {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			require.NoError(t, err)
			_, err = fmt.Fprintln(f, name, got)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			want[name] = got
		}
		require.NotEmpty(t, want[name], "no sum of %s for this version: run the test with -update", name)
		require.Equal(t, want[name], got, "%s has another state than in other processes of version %d. Raise FoldVersion, and run the test with -update.",
			name, conversation.FoldVersion)
	}
}

// sums returns those of a version, by the log.
func sums(t *testing.T, file string) map[string]string {
	t.Helper()
	out := map[string]string{}
	raw, err := os.ReadFile(file)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	for line := range strings.Lines(string(raw)) {
		name, sum, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[name] = sum
	}
	return out
}

// foldSum returns the hash of the states of a log after each event, with all runs and with the newest.
func foldSum(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	whole, little, sum := &conversation.State{}, &conversation.State{}, sha256.New()
	little.Keep(1000)
	for lines.Scan() {
		var e event.Event
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		for _, s := range []*conversation.State{whole, little} {
			require.NoError(t, s.Apply(e))
			sum.Write(storedOf(t, s))
		}
	}
	require.NoError(t, lines.Err())
	require.True(t, little.Forgot(), "%s is too short", file)
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func record(t *testing.T, file string, events []event.Event) {
	t.Helper()
	var b bytes.Buffer
	for _, e := range events {
		line, err := json.Marshal(e)
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
}

// plans is the history of a session with planned runs in which everything happens, by chance.
func plans(seed int) []event.Event {
	return rapid.Custom(func(r *rapid.T) []event.Event {
		c := &chaos{world: newWorld(r)}
		c.do(command.Open, "open", command.OpenSession{Dialect: "myagent"})
		acts := []func(*rapid.T){c.message, c.respond, c.control, c.work, c.work, c.work, c.time}
		for range 120 {
			acts[rapid.IntRange(0, len(acts)-1).Draw(r, "act")](r)
		}
		c.drain(r)
		c.export(r)
		c.message(r)
		c.drain(r)
		return c.log
	}).Example(seed)
}

// aMember is the history of a member whose tools people are asked about.
func aMember() []event.Event {
	return rapid.Custom(func(r *rapid.T) []event.Event {
		m := &member{world: newWorld(r), sent: map[string]bool{}}
		m.from = command.Member
		m.issue(r, command.CreateMember, event.MemberCreatedData{
			MemberID: "a", TeamID: "t", MemberDefinition: event.MemberDefinition{Name: "Coder"},
		})
		acts := []func(*rapid.T){m.message, m.message, m.respond, m.race, m.control, m.work, m.work, m.work, m.note}
		for range 120 {
			acts[rapid.IntRange(0, len(acts)-1).Draw(r, "act")](r)
		}
		m.drain(r)
		return m.log
	}).Example(1)
}

// aChat is a chat with a budget, tools, and a daily limit that people are asked about.
func aChat() []event.Event {
	w := newWorld(require.TestingT(panics{}))
	w.append("created", event.SessionCreatedData{Dialect: "orbit", Principal: "alice"})
	for n := range 3 {
		w.chat(n, "x", "y")
	}
	run := conversation.RunID("asked")
	w.do(command.SendMessage, "asked", command.UserMessage{Content: "go on", RunSpec: event.RunSpec{Mode: event.ModeChat, Budget: &event.Budget{Tokens: 5, OnExceeded: event.BudgetAsk}}})
	w.append("claim", event.JobStartedData{RunID: run, Attempt: 1, Worker: "w1"})
	w.append("ask", event.InputRequestedData{InputID: "budget", RunID: run, Scope: event.ScopeBudget, Attempt: 1, TimeoutSeconds: 60, Budget: &event.BudgetUse{
		Resource: "tokens", Quota: &event.QuotaUse{Scope: "principal", Day: "2026-01-02", Used: 5, Limit: 5},
	}})
	w.append("wait", event.JobSuspendedData{RunID: run, Attempt: 1, Inputs: []string{"budget"}})
	w.append("failed", event.RequestFailedData{RunID: run, Attempt: 1, Try: 1, RetryAfterMS: 5})
	w.do(command.Cancel, "stop", command.CancelRun{Pause: true})
	return w.log
}

// anAgentAsks is a session in which an agent of the swarm asks.
func anAgentAsks() []event.Event {
	w := newWorld(require.TestingT(panics{}))
	w.append("created", event.SessionCreatedData{Dialect: "agui", Principal: "alice"})
	for n := range 3 {
		w.chat(n, "x", "y")
	}
	w.do(command.SendMessage, "asked", command.UserMessage{Content: "paint", RunSpec: event.RunSpec{Mode: event.ModeChat, Agent: "Painter"}})
	ref := command.JobRef{RunID: conversation.RunID("asked")}
	w.do(command.AssignJob, "taken", command.AssignedJob{JobRef: ref, TaskID: "work_1", Agent: "Painter", Attempt: 1})
	for n, input := range []string{"ask_1", "ask_2", "ask_3"} {
		w.agentAsks(ref, input, 1)
		if n == 0 {
			w.do(command.CloseQuestion, "closed", command.ClosedQuestion{JobRef: ref, InputID: input, CommandID: "a1", By: "alice", Decision: event.DecisionAnswer, Message: json.RawMessage(`"red"`)})
		}
	}
	w.do(command.CloseQuestion, "expired", command.ClosedQuestion{JobRef: ref, InputID: "ask_3"})
	w.agentAsks(ref, "ask_4", 1)
	return w.log
}

// aModelThinks is a chat whose model wants its reasoning back, and another one answers in its place; one run is cancelled
// while its calls are under way.
func aModelThinks() []event.Event {
	w := newWorld(require.TestingT(panics{}))
	w.append("created", event.SessionCreatedData{Dialect: "agui", Principal: "alice"})
	for _, message := range []string{"one", "two", "three"} {
		w.thinks(message)
		w.append(message+".run", event.ToolStartedData{RunID: conversation.RunID(message), CallID: message + "a", Attempt: 1, Tool: "add"})
		w.do(command.Cancel, message+".stop", command.CancelRun{})
	}
	return w.log
}

// thinks is a run whose model reasons, fails once, and calls two tools, of which one has begun.
func (w *world) thinks(message string) {
	run := conversation.RunID(message)
	w.do(command.SendMessage, message, command.UserMessage{Content: message, RunSpec: event.RunSpec{Mode: event.ModeChat}})
	w.append(message+".claim", event.JobStartedData{RunID: run, Attempt: 1, Worker: "w1"})
	w.append(message+".m", event.MessageStartedData{RunID: run, Attempt: 1, MessageID: message + "0", Waits: true})
	w.append(message+".lost", event.ReasoningCompletedData{RunID: run, MessageID: message + "0", Content: "no", PassBack: &event.PassBack{Provider: "p", Data: json.RawMessage(`{}`)}})
	w.append(message+".discard", event.MessageDiscardedData{RunID: run, MessageID: message + "0"})
	w.append(message+".failed", event.RequestFailedData{RunID: run, Attempt: 1, Try: 1, Code: "MODEL_BUSY", NextModel: "openai:y"})
	w.append(message+".m1", event.MessageStartedData{RunID: run, Attempt: 1, MessageID: message + "1", Waits: true})
	w.append(message+".thought", event.ReasoningDeltaData{RunID: run, MessageID: message + "1", Text: "hm"})
	w.append(message+".thoughts", event.ReasoningCompletedData{RunID: run, MessageID: message + "1", Content: "hm", PassBack: &event.PassBack{Provider: "p", Data: json.RawMessage(`{"k":1}`)}})
	w.append(message+".said", event.MessageCompletedData{RunID: run, MessageID: message + "1", Attempt: 1, StopReason: event.StopLength, ToolCalls: []event.ToolCall{
		{ID: message + "a", Name: "add", Arguments: json.RawMessage(`{}`)},
		{ID: message + "b", Name: "wait", Arguments: json.RawMessage(`{}`)},
		{ID: message + "c", Name: "cut", Arguments: json.RawMessage(`""`), Invalid: "cut", Policy: &event.ToolPolicy{Approval: event.ApprovalAlways}},
	}})
	w.append(message+".used", event.UsageRecordedData{RunID: run, MessageID: message + "1", InputTokens: 9, OutputTokens: 3, TokenDetails: event.TokenDetails{CachedTokens: 4, CacheWriteTokens: 2, ReasoningTokens: 1}})
	w.append(message+".call", event.ToolCalledData{RunID: run, CallID: message + "a", Attempt: 1, Tool: "add"})
}

// panics reports failures of a history that is made outside of a test.
type panics struct{}

func (panics) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panics) FailNow()                          { panic("a history cannot be made") }
