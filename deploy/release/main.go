package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// command is the work of one subcommand.
type command struct {
	*flag.FlagSet
	root  string // the checkout
	stamp string // the commit's time
	out   io.Writer
}

var commands = map[string]func(context.Context, *command, []string) error{
	"archive": archiveCmd,
	"chart":   chartCmd,
	"formula": formulaCmd,
	"image":   imageCmd,
	"install": installCmd,
	"key":     keyCmd,
	"modules": modulesCmd,
	"notes":   notesCmd,
	"public":  publicCmd,
	"push":    pushCmd,
	"roots":   rootsCmd,
	"set":     setCmd,
	"sign":    signCmd,
	"version": versionCmd,
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) == 0 {
		return errors.New("specify a command")
	}
	work, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("unknown command %q", args[0])
	}
	c := &command{FlagSet: flag.NewFlagSet(args[0], flag.ContinueOnError), out: out}
	c.StringVar(&c.root, "root", ".", "the checkout")
	c.StringVar(&c.stamp, "time", "", "time of the commit, RFC 3339")
	return work(ctx, c, args[1:])
}

// path returns the path of a file of the checkout.
func (c *command) path(elements ...string) string {
	return filepath.Join(append([]string{c.root}, elements...)...)
}

// read returns a file of the checkout.
func (c *command) read(elements ...string) ([]byte, error) {
	return os.ReadFile(c.path(elements...))
}

// time returns the time of everything in the release.
func (c *command) time() (time.Time, error) {
	at, err := time.Parse(time.RFC3339, c.stamp)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse -time: %w", err)
	}
	return at.UTC(), nil
}

// publish writes a file that everybody may read.
func publish(file string, content []byte) error {
	return os.WriteFile(file, content, 0o644) //nolint:gosec // a release is public
}
