package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	root := flag.String("root", ".", "the project's root")
	before := flag.String("before", "", "the root of an earlier checkout; empty = none")
	page := flag.String("page", "", "file to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *root, *before, *page); err != nil {
		fmt.Fprintln(os.Stderr, "profiles:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, before, page string) error {
	command, former := "make profiles", ""
	if before != "" {
		out, err := exec.CommandContext(ctx, "git", "-C", before, "log", "-1", "--format=%h of %cs").Output() //nolint:gosec // a folder of the caller
		if err != nil {
			return fmt.Errorf("name the earlier checkout: %w", err)
		}
		command, former = "make profiles BEFORE=...", "commit "+strings.TrimSpace(string(out))
	}
	var b strings.Builder
	b.WriteString(intro + head(command, former))
	for _, p := range paths {
		fmt.Fprintln(os.Stderr, p.title)
		var old *taken
		if before != "" {
			was, err := take(ctx, before, p)
			if err != nil {
				return err
			}
			old = &was
		}
		now, err := take(ctx, root, p)
		if err != nil {
			return err
		}
		section(&b, p, old, now)
	}
	return os.WriteFile(filepath.Clean(page), []byte(b.String()), 0o644) //nolint:gosec // a page of the documentation
}
