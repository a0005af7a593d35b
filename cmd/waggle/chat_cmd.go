package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/waggle-dev/waggle/cmd/waggle/chat"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

type chatCmd struct {
	Text    []string `arg:"" optional:"" help:"The question. Without it, a conversation; \"-\" reads it from standard input."`
	URL     string   `name:"url" default:"ws://127.0.0.1:9000/ws" env:"WAGGLE_URL" help:"The gateway (${env})."`
	Session string   `help:"Session to continue; without it a new one begins." placeholder:"ID"`
	Token   string   `env:"WAGGLE_TOKEN" help:"API key or JWT (${env}, which does not show in the process list)." placeholder:"TOKEN"`
	JSON    bool     `name:"json" help:"Print the gateway's frames instead, one a line."`
}

// maxQuestion is what the gateway takes at once.
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
	case len(c.Text) == 0 && c.JSON:
		return usageError{errors.New("--json needs a question")}
	case len(c.Text) == 0:
		return c.talk(opt, screen, std)
	case strings.TrimSpace(text) == "":
		return usageError{errors.New("the question is empty")}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var raw io.Writer
	if c.JSON {
		raw = std.out
	}
	return chat.Ask(ctx, opt, text, screen, terminal.Is(std.out), raw)
}

func (c *chatCmd) talk(opt chat.Options, screen *terminal.Screen, std streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	lines := chat.Piped(std.in)
	out, isFile := std.out.(*os.File)
	if isFile && terminal.Is(std.in) && terminal.Is(out) {
		lines = chat.Editor(std.in, out, screen)
	}
	return chat.Talk(ctx, opt, lines, screen, terminal.Is(std.out), interrupts)
}
