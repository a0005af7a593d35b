package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
	"github.com/waggle-dev/waggle/services/tools/workspace"
)

// childMode is set in the environment of a tool server: the test binary itself.
const childMode = "WAGGLE_TEST_SERVER"

// race is GORACE for tool servers: without it, a process of the race detector sleeps for a second before it ends.
const race = "atexit_sleep_ms=50"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		child(mode)
		os.Exit(0)
	}
	bustest.Waiting()
	goleak.VerifyTestMain(m, append(bustest.Leftovers(), goleak.Cleanup(func(code int) {
		built.remove()
		os.Exit(code)
	}))...)
}

// child is the main program of a tool server that misbehaves by its mode and tools.
func child(mode string) {
	switch mode {
	case "exits":
		os.Exit(3)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {}
	case "flood":
		flood("x")
	case "grandchildren":
		spawn(os.Getenv("PIDS"))
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		go serve()
		select {}
	case "banner":
		fmt.Fprintln(os.Stdout, "Welcome to my server!\n[INFO] starting\n   \n\"quoted\"\n"+strings.Repeat("#", 200_000))
		fmt.Fprintln(os.Stderr, "warming up")
	case "legacy":
		legacy()
	case "workspace":
		_ = workspace.Serve(context.Background(), os.Getenv("DIR"))
		return
	case "no tools":
		_ = mcp.NewServer(&mcp.Implementation{Name: "empty", Version: "1"}, nil).Run(context.Background(), &mcp.StdioTransport{})
		return
	case "host":
		host()
	}
	if run := moreModes[mode]; run != nil {
		run()
		return
	}
	serve()
}

// moreModes are the modes of one operating system.
var moreModes = map[string]func(){}

func serve() { _ = childServer().Run(context.Background(), &mcp.StdioTransport{}) }

func flood(s string) {
	block := []byte(strings.Repeat(s, 1+(1<<20)/len(s)))
	for {
		if _, err := os.Stdout.Write(block); err != nil {
			os.Exit(1)
		}
	}
}

// spawn starts two sleepers in the process group and writes their process ids to the file.
func spawn(file string) {
	for range 2 {
		cmd := exec.Command("sleep", "1000")
		cmd.Stdout = os.Stdout // So that the pipe stays open when the server dies.
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		record(file, strconv.Itoa(cmd.Process.Pid))
	}
}

// record adds a line to a file, which shows the test a tool's effect.
func record(file, line string) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	_, _ = f.WriteString(line + "\n")
	_ = f.Close()
}

type in struct {
	Text string `json:"text,omitempty"`
	N    int    `json:"n,omitempty"`
	File string `json:"file,omitempty"`
}

// childServer has one tool for each kind of fault. A tool that is called with a file records there that it ran.
func childServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "child", Version: "1"}, nil)
	add := func(name string, hints mcp.ToolAnnotations, f func(context.Context, in) (string, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Annotations: &hints},
			func(ctx context.Context, _ *mcp.CallToolRequest, i in) (*mcp.CallToolResult, any, error) {
				if i.File != "" {
					record(i.File, name)
				}
				text, err := f(ctx, i)
				if err != nil {
					return nil, nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
			})
	}
	plain, reads := mcp.ToolAnnotations{}, mcp.ToolAnnotations{ReadOnlyHint: true}
	again := mcp.ToolAnnotations{IdempotentHint: true}
	add("echo", reads, func(_ context.Context, i in) (string, error) { return i.Text, nil })
	add("effect", plain, func(context.Context, in) (string, error) { return "done", nil })
	add("big", reads, func(_ context.Context, i in) (string, error) { return strings.Repeat(i.Text, i.N), nil })
	add("fail", plain, func(context.Context, in) (string, error) { return "", fmt.Errorf("no luck today") })
	add("pid", reads, func(context.Context, in) (string, error) { return strconv.Itoa(os.Getpid()), nil })
	add("env", reads, func(context.Context, in) (string, error) { return strings.Join(os.Environ(), "\n"), nil })
	add("fds", reads, func(context.Context, in) (string, error) { return descriptors(), nil })
	add("die", plain, func(context.Context, in) (string, error) { os.Exit(7); return "", nil })
	add("die_once", again, dieOnce)
	add("hang", plain, func(context.Context, in) (string, error) { select {} })
	add("hang_reading", reads, func(context.Context, in) (string, error) { select {} })
	add("wait", plain, func(ctx context.Context, i in) (string, error) {
		<-ctx.Done()
		record(i.File, "stopped")
		return "", ctx.Err()
	})
	add("gate", plain, func(_ context.Context, i in) (string, error) {
		b, err := os.ReadFile(i.Text) // a pipe, which the test opens at the other end
		return string(b), err
	})
	add("sleep", plain, func(_ context.Context, i in) (string, error) {
		t := time.NewTimer(time.Duration(i.N) * time.Millisecond)
		<-t.C
		return "slept", nil
	})
	add("flood_line", plain, func(context.Context, in) (string, error) { flood("x"); return "", nil })
	add("flood_notes", plain, func(context.Context, in) (string, error) {
		flood(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 8000) + `"}}` + "\n")
		return "", nil
	})
	add("flood_long", plain, func(context.Context, in) (string, error) { flood(`{"jsonrpc":"2.0","x":"`); return "", nil })
	add("bad_json", plain, func(context.Context, in) (string, error) { fmt.Fprintln(os.Stdout, "{not json"); select {} })
	add("bad_rpc", plain, func(context.Context, in) (string, error) {
		fmt.Fprintln(os.Stdout, `{"jsonrpc":"3.0","id":[],"result":7,"error":1}`)
		select {}
	})
	add("spawn", plain, func(_ context.Context, i in) (string, error) { spawn(i.File); select {} })
	add("stop_self", plain, func(context.Context, in) (string, error) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {} // The other threads stop a moment later.
	})
	add("grow", plain, func(_ context.Context, i in) (string, error) {
		s.RemoveTools("grow")
		add(i.Text, reads, func(context.Context, in) (string, error) { return "new", nil })
		return "ok", nil
	})
	odd(s)
	return s
}

// odd adds tools with unusual names and schemas.
func odd(s *mcp.Server) {
	ok := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"answer": 42}}, nil
	}
	for name, schema := range map[string]string{
		"dotted.name":            `{"type":"object"}`,
		"remote":                 `{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:1/schema.json"}}}`,
		"local_file":             `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`,
		"invalid":                `{"type":"object","properties":{"a":{"type":"nonsense"}}}`,
		"bomb":                   `{"type":"object","properties":{"a":{"multipleOf":1e-999999999}}}`,
		"endless":                `{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`,
		"exponential":            exponential(60),
		strings.Repeat("n", 100): `{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"required":["a"]}`,
	} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)}, ok)
	}
	s.AddTool(&mcp.Tool{Name: "mixed", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.TextContent{Text: "text"}, &mcp.ImageContent{Data: []byte("123"), MIMEType: "image/png"},
				&mcp.AudioContent{Data: []byte("12"), MIMEType: "audio/wav"},
				&mcp.ResourceLink{URI: "file:///x", Name: "x"},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "mem:y", Text: "inner"}},
			}}, nil
		})
}

// exponential returns a small schema whose check would apply 2 to the power of n schemas to one value.
func exponential(n int) string {
	var defs strings.Builder
	for i := range n {
		fmt.Fprintf(&defs, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"type":"object","properties":{"x":{"$ref":"#/$defs/a0"}},"$defs":{%s"a%d":{"type":"string"}}}`, defs.String(), n)
}

// dieOnce dies unless it has run before.
func dieOnce(_ context.Context, i in) (string, error) {
	b, _ := os.ReadFile(i.File)
	if strings.Count(string(b), "\n") < 2 {
		os.Exit(7)
	}
	return "second time lucky", nil
}

func descriptors() string {
	entries, _ := os.ReadDir("/proc/self/fd")
	var all []string
	for _, e := range entries {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		all = append(all, e.Name()+" "+to)
	}
	return strings.Join(all, "\n")
}

// host runs a service with a stubborn server until it is killed.
func host() {
	svc, err := service.New(service.Config{Servers: []mcpservers.Config{program("child", "stubborn")}}, service.Deps{})
	if err != nil || svc.Start(context.Background()) != nil {
		os.Exit(1)
	}
	for {
		c := tools.Call{ID: "1", Tenant: id.DefaultTenant, Tool: "child_pid"}
		if res, err := svc.Call(context.Background(), c); err == nil {
			record(os.Getenv("PIDS"), res.Text)
			select {}
		}
	}
}

// legacy ignores the newest handshake once, and is an ordinary server the next time.
func legacy() {
	file := os.Getenv("STARTS")
	record(file, "start")
	if b, _ := os.ReadFile(file); strings.Count(string(b), "\n") == 1 {
		fmt.Fprintln(os.Stdout, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"go away"}}`)
		os.Exit(1)
	}
}
