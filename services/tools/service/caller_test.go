package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// TestCaller is the conformance suite of Caller, for the service itself and for a
// client on the bus.
func TestCaller(t *testing.T) {
	for name, begin := range map[string]func(testing.TB, service.Config) *rig{"in process": start, "on the bus": startOnBus} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conform(t, begin)
		})
	}
}

func conform(t *testing.T, begin func(testing.TB, service.Config) *rig) {
	other := program("other", "good")
	other.Tenants = []id.Tenant{{}}
	r := begin(t, service.Config{Builtin: true, Servers: []mcpservers.Config{program("child", "good"), other}})
	r.await(t, "child_echo")
	for name, test := range map[string]func(*testing.T, *rig){
		"list":            offers,
		"by server":       byServer,
		"workspace":       theWorkspace,
		"wrong arguments": wrongArguments,
		"not there":       notThere,
		"tool error":      toolError,
		"content":         content,
		"output cap":      outputCap,
		"side by side":    sideBySide,
		"same id":         sameID,
	} {
		t.Run(name, func(t *testing.T) { test(t, r) })
	}
	for name, test := range map[string]func(*testing.T, *rig){
		"timeout":              timeOut,
		"cancel":               cancelPolite,
		"cancel a deaf tool":   cancelDeaf,
		"cancel before":        cancelBefore,
		"dies":                 diesOnCall,
		"dies, may be retried": diesOnce,
		"killed":               killed,
		"stops answering":      stopped,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, service.Config{Servers: []mcpservers.Config{program("child", "good")}})
			r.await(t, "child_echo")
			test(t, r)
			require.Equal(t, "still here", r.call(t, "child_echo", args{"text": "still here"}), "the server must come back")
		})
	}
	for name, test := range map[string]func(*testing.T, func(testing.TB, service.Config) *rig){
		"too many": tooMany, "drain": drain, "stop": stopService,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, begin)
		})
	}
}

func offers(t *testing.T, r *rig) {
	list, err := r.List(t.Context(), id.DefaultTenant)
	require.NoError(t, err)
	byName := map[string]tools.Tool{}
	var names []string
	for _, o := range list {
		require.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, o.Name)
		byName[o.Name] = o
		names = append(names, o.Name)
	}
	require.True(t, slices.IsSorted(names))
	require.Len(t, byName, len(list), "names are unique")
	for _, name := range []string{"workspace_list_files", "workspace_read_file", "workspace_search_files"} {
		require.True(t, byName[name].ReadOnly, name)
	}
	put := byName["workspace_write_file"]
	require.False(t, put.ReadOnly || put.Idempotent)
	require.True(t, put.Repeatable([]byte(`{"path":"x","content":"y"}`)))
	require.True(t, put.Repeatable([]byte(`{"append":false}`)))
	require.False(t, put.Repeatable([]byte(`{"append":true}`)))
	require.False(t, put.Repeatable([]byte(`{"append":1}`)))
	require.False(t, put.Repeatable([]byte(`[`)))
	require.True(t, byName["child_die_once"].Idempotent)
	require.Contains(t, string(byName["child_echo"].InputSchema), `"text"`)
	require.Subset(t, names, []string{"child_dotted_name_10c733ab", "child_remote", "child_local_file", "child_invalid", "child_bomb"})
	for _, name := range []string{"child_endless", "child_exponential", "other_echo"} {
		require.NotContains(t, names, name)
	}
}

func theWorkspace(t *testing.T, r *rig) {
	require.Equal(t, "Created a/b.txt with 5 bytes.", r.call(t, "workspace_write_file", args{"path": "a/b.txt", "content": "hello"}))
	require.Contains(t, r.call(t, "workspace_list_files", args{"recursive": true}), "a/b.txt (5 bytes)\nnotes.md")
	require.Equal(t, "hello", r.call(t, "workspace_read_file", args{"path": "a/b.txt"}))
	require.Equal(t, "a/b.txt:1: hello\n", r.call(t, "workspace_search_files", args{"text": "HELL"}))
	c := newCall(t, "workspace_read_file", args{"path": "../../etc/passwd"})
	res, err := r.Call(t.Context(), c)
	require.NoError(t, err)
	require.True(t, res.IsError)
	require.Equal(t, "../../etc/passwd leads out of the workspace", res.Text)
	c = newCall(t, "workspace_list_files", nil)
	c.Tenant = id.Tenant{}
	require.NoError(t, c.Tenant.UnmarshalText([]byte("acme")))
	res, err = r.Call(t.Context(), c)
	require.NoError(t, err)
	require.NotContains(t, res.Text, "b.txt", "a tenant sees only its own folder")
}

func wrongArguments(t *testing.T, r *rig) {
	long := "child_" + strings.Repeat("n", 49) + "_"
	list, err := r.List(t.Context(), id.DefaultTenant)
	require.NoError(t, err)
	for _, o := range list {
		if strings.HasPrefix(o.Name, long) {
			long = o.Name
		}
	}
	for _, tc := range []struct{ tool, in, field, says string }{
		{"workspace_read_file", `{}`, "", "missing property 'path'"},
		{"workspace_read_file", `{"path":7}`, "/path", "got number, want string"},
		{"workspace_read_file", `{"path":"x","more":1}`, "", "additional properties 'more' not allowed"},
		{"workspace_read_file", `[]`, "", "must be a JSON object"},
		{"workspace_read_file", `{"path":`, "", "arguments are invalid"},
		{"child_echo", `{"text":"a","text":"b"}`, "", "arguments are invalid"},
		{long, `{"a":0}`, "/a", "minimum: got 0, want 1"},
		{long, `{"a":1e999999999}`, "", "exponent"},
		{long, `{"a":1.5}`, "/a", "got number, want integer"},
	} {
		c := newCall(t, tc.tool, nil)
		c.Arguments = []byte(tc.in)
		if !jsonOK(tc.in) && r.Caller != tools.Caller(r.svc) {
			continue // Such a call does not fit into a message.
		}
		f := r.fails(t, c, fault.ToolBadInput)
		require.Contains(t, f.Message, tc.says, tc.in)
		require.Equal(t, tc.field, f.Field, tc.in)
	}
	c := newCall(t, "child_echo", nil)
	c.Arguments = nil
	_, err = r.Call(t.Context(), c)
	require.NoError(t, err, "no arguments are an empty object")
	c = newCall(t, "child_echo", nil)
	c.ID = ""
	require.Equal(t, "id", r.fails(t, c, fault.ToolBadInput).Field)
}

func notThere(t *testing.T, r *rig) {
	for _, name := range []string{"child_nothing", "nobody_echo", "child", "", "other_echo", "child_exponential", strings.Repeat("x", 1000)} {
		r.fails(t, newCall(t, name, nil), fault.ToolNotFound)
	}
}

func toolError(t *testing.T, r *rig) {
	res, err := r.Call(t.Context(), newCall(t, "child_fail", nil))
	require.NoError(t, err)
	require.Equal(t, tools.Result{Text: "no luck today", Bytes: 13, IsError: true}, res)
}

func content(t *testing.T, r *rig) {
	require.Equal(t, "text\n[An image, image/png, 3 bytes]\n[A sound, audio/wav, 2 bytes]\n[A link to x: file:///x]\ninner",
		r.call(t, "child_mixed", nil))
	require.Equal(t, `{"answer":42}`, r.call(t, "child_dotted_name_10c733ab", nil))
}

func outputCap(t *testing.T, r *rig) {
	for _, text := range []string{"x", "ä", "\x00", "\"<>&\u2028"} {
		n := 150_000 / len(text)
		res, err := r.Call(t.Context(), newCall(t, "child_big", args{"text": text, "n": n}))
		require.NoError(t, err)
		require.Equal(t, n*len(text), res.Bytes)
		require.True(t, res.Truncated)
		require.LessOrEqual(t, len(res.Text), 128<<10)
		require.Greater(t, len(res.Text), 127<<10)
		require.True(t, strings.HasPrefix(strings.Repeat(text, n), res.Text), "cut within a character")
	}
}

func sideBySide(t *testing.T, r *rig) {
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			want := fmt.Sprint("text ", i)
			res, err := r.Call(context.Background(), newCall(t, "child_echo", args{"text": want}))
			if err != nil || res.Text != want {
				t.Errorf("call %d: %q, %v", i, res.Text, err)
			}
		})
	}
	all.Wait()
}

func sameID(t *testing.T, r *rig) {
	file := r.file("same")
	c := newCall(t, "child_sleep", args{"n": 300, "file": file})
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			res, err := r.Call(context.Background(), c)
			if err != nil || res.Text != "slept" {
				t.Errorf("%q, %v", res.Text, err)
			}
		})
	}
	all.Wait()
	res, err := r.Call(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "slept", res.Text)
	require.Equal(t, 1, r.ran(t, "same"))
	elsewhere := c
	elsewhere.Scope = "another session"
	_, err = r.Call(t.Context(), elsewhere)
	require.NoError(t, err)
	require.Equal(t, 2, r.ran(t, "same"), "an id counts within its scope")
	c.Arguments = []byte(`{"n":1}`)
	require.Contains(t, r.fails(t, c, fault.ToolBadInput).Message, "was already used")
}

func timeOut(t *testing.T, r *rig) {
	pid := r.call(t, "child_pid", nil)
	c := r.timesOut(t, "child_hang", "hang")
	require.Equal(t, 1, r.ran(t, "hang"))
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.False(t, alive(n), "the hanging tool is stopped when its end is reported")
	r.fails(t, c, fault.ToolTimeout)
	require.Equal(t, 1, r.ran(t, "hang"), "a call without effect known is not repeated")
}

func cancelPolite(t *testing.T, r *rig) {
	pid := r.call(t, "child_pid", nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		r.began(t, "wait")
		cancel()
	}()
	_, err := r.Call(ctx, newCall(t, "child_wait", args{"file": r.file("wait")}))
	isFault(t, err, fault.ToolCancelled)
	require.Equal(t, 2, r.ran(t, "wait"), "the tool has stopped when that is reported")
	require.Equal(t, pid, r.call(t, "child_pid", nil), "a server that obeys lives on")
}

func cancelDeaf(t *testing.T, r *rig) {
	pid, err := strconv.Atoi(r.call(t, "child_pid", nil))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		r.began(t, "hang")
		cancel()
	}()
	_, err = r.Call(ctx, newCall(t, "child_hang", args{"file": r.file("hang")}))
	isFault(t, err, fault.ToolCancelled)
	require.False(t, alive(pid), "the tool has stopped when that is reported")
}

func cancelBefore(t *testing.T, r *rig) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Call(ctx, newCall(t, "child_hang", nil))
	isFault(t, err, fault.ToolCancelled)
}

func diesOnCall(t *testing.T, r *rig) {
	c := newCall(t, "child_die", args{"file": r.file("die")})
	r.fails(t, c, fault.ToolLost)
	r.fails(t, c, fault.ToolLost)
	require.Equal(t, 1, r.ran(t, "die"), "a tool that may have had its effect is not run again")
}

func diesOnce(t *testing.T, r *rig) {
	require.Equal(t, "second time lucky", r.call(t, "child_die_once", args{"file": r.file("once")}))
	require.Equal(t, 2, r.ran(t, "once"))
}

func killed(t *testing.T, r *rig) {
	pid, err := strconv.Atoi(r.call(t, "child_pid", nil))
	require.NoError(t, err)
	go func() {
		r.began(t, "hang")
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}()
	r.fails(t, newCall(t, "child_hang", args{"file": r.file("hang")}), fault.ToolLost)
	require.Equal(t, 1, r.ran(t, "hang"))
}

func stopped(t *testing.T, r *rig) {
	pid, err := strconv.Atoi(r.call(t, "child_pid", nil))
	require.NoError(t, err)
	r.timesOut(t, "child_stop_self", "self")
	require.False(t, alive(pid))
}

func tooMany(t *testing.T, begin func(testing.TB, service.Config) *rig) {
	r := begin(t, service.Config{MaxCalls: 3, Servers: []mcpservers.Config{program("child", "good")}})
	r.await(t, "child_echo")
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, file := range []string{"a", "b"} {
		all.Go(func() { _, _ = r.Call(ctx, newCall(t, "child_wait", args{"file": r.file(file)})) })
		r.began(t, file)
	}
	c := newCall(t, "child_echo", args{"text": "x"})
	require.True(t, r.fails(t, c, fault.ToolsBusy).Retryable())
	theirs := newCall(t, "child_echo", args{"text": "y"})
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	theirs.Tenant = other
	res, err := r.Call(t.Context(), theirs)
	require.NoError(t, err, "the calls of a tenant that hang leave another tenant its places")
	require.Equal(t, "y", res.Text)
	cancel()
	all.Wait()
	res, err = r.Call(t.Context(), c)
	require.NoError(t, err, "a call that did not run may be made again under its id")
	require.Equal(t, "x", res.Text)
}

func drain(t *testing.T, begin func(testing.TB, service.Config) *rig) {
	r := begin(t, service.Config{Servers: []mcpservers.Config{program("child", "good")}})
	r.await(t, "child_echo")
	var all sync.WaitGroup
	all.Go(func() {
		res, err := r.Call(context.Background(), newCall(t, "child_sleep", args{"n": 1000, "file": r.file("f")}))
		if err != nil || res.Text != "slept" {
			t.Errorf("a running call must be finished: %q, %v", res.Text, err)
		}
	})
	r.began(t, "f")
	require.NoError(t, r.svc.Drain(t.Context()))
	all.Wait()
	r.fails(t, newCall(t, "child_echo", nil), fault.ToolsDown)
}

func stopService(t *testing.T, begin func(testing.TB, service.Config) *rig) {
	r := begin(t, service.Config{Servers: []mcpservers.Config{program("child", "good")}})
	r.await(t, "child_echo")
	pid, err := strconv.Atoi(r.call(t, "child_pid", nil))
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		_, err := r.Call(context.Background(), newCall(t, "child_hang", args{"file": r.file("f")}))
		if !errors.Is(err, fault.New(fault.ToolLost)) {
			t.Errorf("got %v", err)
		}
	})
	r.began(t, "f")
	r.svc.Stop()
	require.False(t, alive(pid))
	all.Wait()
	r.fails(t, newCall(t, "child_echo", nil), fault.ToolsDown)
}
