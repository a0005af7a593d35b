package waggle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/sdk"
	"github.com/waggle-dev/waggle/sdk/go/internal/judge"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

// TestConformance does what the cases of package sdk say. The clients for TypeScript and Python have the same test.
func TestConformance(t *testing.T) {
	groups, err := sdk.Load()
	require.NoError(t, err)
	binary(t)
	j, err := judge.Start()
	require.NoError(t, err)
	t.Cleanup(j.Close)
	for _, g := range groups {
		for _, c := range g.Cases {
			t.Run(c.Name, func(t *testing.T) { conform(t, j.URL(), c) })
		}
	}
}

// binary builds the real server, unless the environment names one.
func binary(t *testing.T) {
	if os.Getenv(judge.Binary) != "" {
		return
	}
	path := filepath.Join(t.TempDir(), "waggle")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./waggle")
	build.Dir = filepath.Join("..", "..", "..", "cmd")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	t.Setenv(judge.Binary, path)
}

// conform does a case, and has it judged.
func conform(t *testing.T, address string, c sdk.Case) {
	at := address + "/cases/" + c.Name
	begun := post[struct{ URLs []string }](t, at, nil)
	p := newProgram(t, at, c, begun.URLs)
	seen := make([]sdk.Sight, 0, len(c.Program))
	for i, s := range c.Program {
		sight, err := p.do(s)
		if err != nil {
			sight = sdk.Sight{"error": errorOf(err)}
		}
		seen = append(seen, sight)
		if err != nil && c.Sees[i]["error"] == nil {
			break
		}
	}
	p.leave()
	for _, wrong := range post[struct{ Wrong []string }](t, at+"/end", judge.Seen{Seen: seen, Pauses: p.pauses}).Wrong {
		t.Error(wrong)
	}
}

func post[T any](t *testing.T, address string, body any) T {
	t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(raw))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	var answer T
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	return answer
}

// program is what a case does with the client.
type program struct {
	t      *testing.T
	at     string // the case at the judge
	ctx    context.Context
	cancel context.CancelFunc
	client *waggle.Client
	runs   map[string]*waggle.Run
	made   map[string]string // ids, by their names in the case
	real   bool
	logs   map[string]*reader
	asked  []string // ids of the questions that the program has read

	mu     sync.Mutex
	pauses []int
}

func newProgram(t *testing.T, at string, c sdk.Case, urls []string) *program {
	p := &program{t: t, at: at, runs: map[string]*waggle.Run{}, made: map[string]string{}, real: c.Real != "", logs: map[string]*reader{}}
	p.ctx, p.cancel = context.WithCancel(t.Context())
	o := waggle.Options{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond}
	tokens, next := c.Client.Tokens, 0
	switch len(tokens) {
	case 0:
	case 1:
		o.Token = tokens[0]
	default:
		o.TokenSource = func(context.Context) (string, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			next++
			return tokens[min(next, len(tokens))-1], nil
		}
	}
	turn := 0
	o.Next = func() string { turn++; return urls[turn%len(urls)] }
	var err error
	p.client, err = waggle.Open(p.ctx, urls[0], o)
	require.NoError(t, err)
	waggle.OnRest(p.client, p.rest)
	return p
}

// rest notes the pauses that servers ask for, and does not wait for them.
func (p *program) rest(ctx context.Context, d time.Duration) bool {
	if d >= time.Second {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pauses = append(p.pauses, int(d/time.Second))
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *program) leave() {
	for _, r := range p.logs {
		r.stop()
	}
	p.cancel()
}

// errorOf returns an error as all languages tell it.
func errorOf(err error) map[string]any {
	if e, ok := errors.AsType[*waggle.Error](err); ok {
		return map[string]any{"code": e.Code, "status": e.Status, "field": e.Field, "retryable": e.Retryable()}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return map[string]any{"code": "TIMEOUT"}
	}
	if _, ok := errors.AsType[*link.DialError](err); ok {
		return map[string]any{"code": "UNREACHABLE", "status": 0, "retryable": true}
	}
	return map[string]any{"code": fmt.Sprintf("%T: %v", err, err)}
}

// reader reads a log, and keeps its place between steps.
type reader struct {
	next    func() (event.Event, error, bool)
	stop    func()
	expired []uint64
	gaps    []int
}

func (p *program) reader(s sdk.Step) *reader {
	name := s.Log + s.Do
	if p.logs[name] == nil {
		r := &reader{expired: []uint64{}, gaps: []int{}}
		var events iter.Seq2[event.Event, error]
		if s.Do == "live" {
			o := waggle.LiveOptions{Gap: func(n int) { r.gaps = append(r.gaps, n) }}
			for _, t := range s.Types {
				o.Types = append(o.Types, event.Type(t))
			}
			events = p.client.Live(p.ctx, o)
		} else {
			kind, entity := split(s.Log)
			o := waggle.ReadOptions{After: s.After, Expired: func(first uint64) { r.expired = append(r.expired, first) }}
			events = p.client.Log(kind, p.named(entity)).Events(p.ctx, o)
		}
		r.next, r.stop = iter.Pull2(events)
		p.logs[name] = r
	}
	return p.logs[name]
}

func split(log string) (id.Kind, string) {
	for i := range log {
		if log[i] == '/' {
			return id.Kind(log[:i]), log[i+1:]
		}
	}
	return "", log
}

// named returns the id of what the program has made under the name. Sessions of scripted servers have their names for ids.
func (p *program) named(name string) string {
	if made, ok := p.made[name]; ok {
		return made
	}
	return name
}

// read reads a log up to a sequence or a type, or to its end.
func (p *program) read(s sdk.Step) (sdk.Sight, error) {
	r := p.reader(s)
	seqs, types, text := []uint64{}, []string{}, ""
	for {
		e, err, ok := r.next()
		if !ok {
			return sdk.Sight{"events": seqs, "types": types, "text": text, "expired": r.expired, "gaps": r.gaps, "ended": true}, nil
		}
		if err != nil {
			return nil, err
		}
		seqs = append(seqs, e.Sequence)
		if len(s.Types) == 0 || contains(s.Types, string(e.Type)) {
			types = append(types, string(e.Type))
		}
		if q, ok := waggle.QuestionID(e); ok {
			p.asked = append(p.asked, q)
		}
		var d struct{ Text string }
		if e.Type == event.MessageDelta && json.Unmarshal(e.Data, &d) == nil {
			text += d.Text
		}
		if string(e.Type) == s.TypeOf || s.Until > 0 && e.Sequence >= s.Until || s.Do == "live" && len(seqs) == s.Events {
			sight := sdk.Sight{"events": seqs, "types": types, "text": text, "size": len(text), "expired": r.expired, "gaps": r.gaps, "data": e.Data}
			if len(text) > 1000 {
				delete(sight, "text")
			}
			return sight, nil
		}
	}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// do does a step, and returns what it shows.
func (p *program) do(s sdk.Step) (sdk.Sight, error) {
	ctx := p.ctx
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(s.Timeout)*time.Millisecond)
		defer cancel()
	}
	if f := p.steps()[s.Do]; f != nil {
		return f(ctx, s)
	}
	return nil, fmt.Errorf("the program cannot %s", s.Do)
}

type step = func(context.Context, sdk.Step) (sdk.Sight, error)

// steps are what the program can do.
func (p *program) steps() map[string]step {
	c := p.client
	return map[string]step{
		sdk.Tell: func(_ context.Context, s sdk.Step) (sdk.Sight, error) {
			post[struct{}](p.t, p.at+"/tell", s)
			return sdk.Sight{}, nil
		},
		"me": func(ctx context.Context, _ sdk.Step) (sdk.Sight, error) {
			me, err := c.Me(ctx)
			return sdk.Sight{"subject": me.Subject}, err
		},
		"call": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			raw, err := c.Call(ctx, s.Method, body(s.Data), strings.Split(s.Path, "/")...)
			return sdk.Sight{"body": raw}, err
		},
		"create_session": p.createSession,
		"read":           func(_ context.Context, s sdk.Step) (sdk.Sight, error) { return p.read(s) },
		"live":           func(_ context.Context, s sdk.Step) (sdk.Sight, error) { return p.read(s) },
		"send":           p.send,
		"solve":          p.solve,
		"result":         p.result,
		"stop": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			return sdk.Sight{}, p.runs[s.Run].Cancel(ctx, s.Reason)
		},
		"cancel": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			return sdk.Sight{}, c.CancelSession(ctx, p.named(s.Session))
		},
		"cancel_step": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			return sdk.Sight{}, c.CancelStep(ctx, p.named(s.Session), s.Step, api.StepAction{Reason: s.Reason})
		},
		"restart_step": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			return sdk.Sight{}, c.RestartStep(ctx, p.named(s.Session), s.Step, api.StepAction{Reason: s.Reason})
		},
		"cancel_plan": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			return sdk.Sight{}, c.CancelPlan(ctx, p.named(s.Session), s.Reason)
		},
		"replan": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			return sdk.Sight{}, c.Replan(ctx, p.named(s.Session), api.NewPlan{Question: s.Text})
		},
		"show": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			d, err := c.ShowSession(ctx, p.named(s.Session))
			return sdk.Sight{"session": d.SessionID, "runs": len(d.Runs)}, err
		},
		"delete": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			done, err := c.DeleteSession(ctx, p.named(s.Session))
			return sdk.Sight{"done": done}, err
		},
		"list_sessions": func(ctx context.Context, _ sdk.Step) (sdk.Sight, error) {
			ids := []string{}
			all, err := c.Sessions(ctx)
			for _, one := range all {
				ids = append(ids, one.SessionID)
			}
			return sdk.Sight{"ids": ids}, err
		},
		"head": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			kind, entity := split(s.Log)
			head, err := c.Log(kind, p.named(entity)).Head(ctx)
			return sdk.Sight{"first": head.First, "last": head.Last}, err
		},
		"file": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			return fileOf(c.SessionFile(ctx, p.named(s.Session), s.File))
		},
		"artifact": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			kind, entity := split(s.Log)
			return fileOf(c.Log(kind, p.named(entity)).Artifact(ctx, s.File))
		},
		"questions": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			ids := []string{}
			all, err := c.Questions(ctx, url.Values{"log": {p.named(s.Session)}})
			for s.None && len(all) > 0 && err == nil {
				all, err = c.Questions(ctx, url.Values{"log": {p.named(s.Session)}})
			}
			for _, q := range all {
				ids = append(ids, q.ID)
			}
			return sdk.Sight{"ids": ids}, err
		},
		"answer":       p.answer,
		"create_task":  p.createTask,
		"retry_task":   p.retryTask,
		"task_result":  p.taskResult,
		"list_tasks":   p.listTasks,
		"show_task":    p.showTask,
		"cancel_task":  p.cancelTask,
		"message_task": p.messageTask,
		"create_team":  p.createTeam,
		"message_team": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			return sdk.Sight{}, c.MessageTeam(ctx, p.named(s.Team), api.TeamMessage{ID: s.ID, Content: s.Text})
		},
		"stop_team": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			return sdk.Sight{}, c.StopTeam(ctx, p.named(s.Team), "", s.Reason)
		},
		"close_team": func(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
			return sdk.Sight{}, c.DeleteTeam(ctx, p.named(s.Team))
		},
	}
}

func body(data any) []byte {
	if data == nil {
		return nil
	}
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return raw
}

// fileOf describes a file: its text, or its size.
func fileOf(raw []byte, err error) (sdk.Sight, error) {
	if len(raw) < 1000 {
		return sdk.Sight{"text": string(raw), "size": len(raw)}, err
	}
	sum := 0
	for i, b := range raw {
		sum = (sum + (i%251+1)*int(b)) % 1_000_003
	}
	return sdk.Sight{"size": len(raw), "sum": sum}, err
}

func (p *program) createSession(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	id, err := p.client.CreateSession(ctx, api.NewSession{SessionID: s.ID, OnBusy: s.Mode})
	if err == nil {
		p.made[s.Session] = id
	}
	return sdk.Sight{"session": id}, err
}

func (p *program) send(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	m := api.NewMessage{ID: s.ID, Content: s.Text, Mode: s.Mode, Agent: s.Agent}
	if s.Confirm {
		m.ConfirmPlan = &s.Confirm
	}
	if s.Attach != "" {
		m.Files = []api.MessageFile{waggle.File("text/plain", "note.txt", []byte(s.Attach))}
	}
	session := s.Session
	if p.real {
		session = p.made[s.Session]
	}
	run, err := p.client.Send(ctx, session, m)
	if err == nil {
		p.runs[s.Run], p.made[s.Session] = run, run.Session
	}
	return sdk.Sight{}, err
}

func (p *program) solve(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	var steps []event.Step
	for i, title := range s.Steps {
		steps = append(steps, event.Step{ID: fmt.Sprint("step_", i+1), Title: title})
	}
	run, err := p.client.Solve(ctx, p.named(s.Session), steps, api.RunOptions{})
	p.runs[s.Run] = run
	return sdk.Sight{}, err
}

func (p *program) result(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	a, err := p.runs[s.Run].Result(ctx)
	return sdk.Sight{"text": a.Text, "size": len(a.Text), "outcome": a.Status}, err
}

func (p *program) answer(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	q := s.Question
	switch q {
	case "first":
		q = p.asked[0]
	case "second":
		q = p.asked[1]
	}
	a := api.QuestionAnswer{Decision: event.DecisionReject, Feedback: s.Feedback}
	if s.Approve {
		a.Decision = event.DecisionApprove
	}
	out, err := p.client.AnswerQuestion(ctx, q, a)
	return sdk.Sight{"decision": out.Decision}, err
}
