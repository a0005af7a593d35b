package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/waggle-dev/waggle/cmd/waggle/chat"
	"github.com/waggle-dev/waggle/cmd/waggle/console"
	"github.com/waggle-dev/waggle/cmd/waggle/planchat"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

type chatCmd struct {
	Text []string `arg:"" optional:"" help:"The question. Without it, start a conversation; \"-\" reads it from standard input."`
	gatewayFlags
	Session string `help:"Session to continue (a new one)." placeholder:"ID"`
	JSON    bool   `name:"json" help:"Print the gateway's frames as JSON, one per line."`
	Plan    bool   `help:"Plan first: show the plan, ask for approval, then show the progress of its steps."`
	Yes     bool   `help:"With --plan: approve the plan without asking."`
}

// maxQuestion is the gateway's limit for one message.
const maxQuestion = 256 << 10

// Run implements the command.
func (c *chatCmd) Run(std streams) error {
	screen := terminal.NewScreen(std.out, std.err)
	opt := chat.Options{URL: c.URL, Session: c.Session, Token: c.Token}
	text := strings.Join(c.Text, " ")
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(std.in, maxQuestion))
		if err != nil {
			return err
		}
		text = string(b)
	}
	switch {
	case c.Yes && !c.Plan:
		return usageError{errors.New("--yes requires --plan")}
	case len(c.Text) == 0 && c.JSON:
		return usageError{errors.New("--json requires a question")}
	case len(c.Text) > 0 && strings.TrimSpace(text) == "":
		return usageError{errors.New("the question is empty")}
	case c.Plan:
		return c.plan(text, screen, std)
	case len(c.Text) == 0:
		return c.talk(opt, screen, std)
	}
	ctx, stop := endable()
	defer stop()
	var raw io.Writer
	if c.JSON {
		raw = std.out
	}
	return chat.Ask(ctx, opt, text, c.answers(std), screen, terminal.Is(std.out), raw)
}

// answers returns the lines that answer the questions of a single run: none if the text has used up the input.
func (c *chatCmd) answers(std streams) chat.Lines {
	switch {
	case c.JSON, len(c.Text) == 1 && c.Text[0] == "-":
		return nil
	case terminal.Is(std.in):
		return chat.Typed(std.in)
	}
	return chat.Piped(std.in)
}

func (c *chatCmd) talk(opt chat.Options, screen *terminal.Screen, std streams) error {
	ctx, interrupts, stop := interruptible()
	defer stop()
	if terminal.Is(std.out) {
		opt.Model = c.model(ctx)
	}
	lines := lines(std, console.Options{Screen: screen, Interrupts: interrupts, Placeholder: placeholder}, "chat-history")
	return chat.Talk(ctx, opt, lines, screen, terminal.Is(std.out), interrupts)
}

// model returns the model that most workers answer with, empty if the gateway does not say.
func (c *chatCmd) model(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, connectMaxWait)
	defer cancel()
	w, err := waggle.Open(ctx, c.URL, waggle.Options{Token: c.Token, Hasty: true})
	if err != nil {
		return "" // the connection fails with the reason
	}
	raw, err := w.Call(ctx, http.MethodGet, nil, "status")
	var s api.Status
	if err != nil || json.Unmarshal(raw, &s) != nil || len(s.Models) == 0 {
		return ""
	}
	return s.Models[0].Name
}

// placeholder is the hint in the empty input line.
const placeholder = "Ask something; /help shows the commands"

// plan asks in the dialect of runs that plan, which has a path of its own.
func (c *chatCmd) plan(text string, screen *terminal.Screen, std streams) error {
	ctx, interrupts, stop := interruptible()
	defer stop()
	confirm := !c.Yes
	opt := planchat.Options{
		Options: myagent.Options{
			URL: sessionURL(c.URL), Session: c.Session, Token: c.Token, Language: terminal.Language(os.Getenv), ConfirmPlan: &confirm,
		},
		Text: text, Stream: terminal.Is(std.out), Interrupts: interrupts,
	}
	if c.JSON {
		opt.Raw = std.out
	}
	o := console.Options{Screen: screen, Interrupts: interrupts}
	history := ""
	if text == "" {
		o.Placeholder, history = placeholder, "chat-history"
		opt.Model = c.model(ctx)
	}
	return planchat.Talk(ctx, opt, lines(std, o, history), screen)
}

// sessionURL returns the address of the session protocol beside that of the chat.
func sessionURL(chat string) string {
	if base, ok := strings.CutSuffix(chat, "/ws"); ok {
		return base + "/ws/session"
	}
	return chat
}

// interruptible returns a context that SIGTERM ends, and where interrupts arrive.
func interruptible() (ctx context.Context, interrupts chan os.Signal, stop func()) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	got := make(chan os.Signal, 1)
	signal.Notify(got, os.Interrupt)
	return ctx, got, func() { signal.Stop(got); cancel() }
}

// lines returns the source of input lines: a terminal or a pipe. With the name of a history,
// earlier messages can be recalled.
func lines(std streams, o console.Options, history string) chat.Lines {
	out, isFile := std.out.(*os.File)
	switch {
	case !isFile || !terminal.Is(std.in) || !terminal.Is(out):
		return chat.Piped(std.in)
	case os.Getenv("TERM") == "dumb":
		return chat.Typed(std.in)
	}
	o.In, o.Out, o.Environ = std.in, out, os.Environ()
	if history != "" {
		var err error
		if o.History, err = console.OpenHistory(console.HistoryFile(history)); err != nil {
			o.Screen.Remark(terminal.Yellow, terminal.Line(err.Error(), 200))
		}
	}
	return console.Open(o)
}
