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

// path is a busy path. One with a benchmark is measured in the tests of the gateway, the other in "waggle up".
type path struct {
	title, about    string
	benchmark, time string
	unit            string // of its figure
}

var paths = []path{
	{"As fast as the sockets take them", "Events of one log to each of 1,000 sockets (`BenchmarkFanOut`).", "BenchmarkFanOut/gateway", "3000x", "ns/delivery"},
	{"Many logs", "An append to each of 300 logs, and its frame to a viewer (`BenchmarkLogs`).", "BenchmarkLogs$", "5s", "cpu-µs/event"},
	{"Missed events from the log", "1,000 missed events from the log (`BenchmarkReplay`).", "BenchmarkReplay/1000_in_the_log", "5s", "cpu-ms/replay"},
	{"Missed events from memory", "500 missed events from memory (`BenchmarkReplay`).", "BenchmarkReplay/500_in_memory", "5s", "cpu-ms/replay"},
	{"Answers", "Answers of one line, to eight chats.", "", "", ""},
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
