// Command waggle is every part of Waggle in one binary: the server in one process
// or role by role, and the tools of the people who use and operate it.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

// Exit codes, beside 0.
const (
	exitFailed = 1 // it was tried and failed
	exitUsage  = 2 // flags or configuration are wrong
)

type cli struct {
	ShowVersion versionFlag `name:"version" help:"Show the version."`

	Up          upCmd          `cmd:"" help:"Run every role and an embedded NATS server in one process."`
	Serve       serveCmd       `cmd:"" help:"Run some roles against a NATS server."`
	Chat        chatCmd        `cmd:"" help:"Ask a question, or talk, in a session of the gateway."`
	Sessions    sessionsCmd    `cmd:"" help:"List, show, export, import and cancel sessions."`
	Agents      agentsCmd      `cmd:"" help:"List the agents of the swarm."`
	Tasks       tasksCmd       `cmd:"" help:"Give tasks to agents; list, show, watch and cancel them."`
	Teams       teamsCmd       `cmd:"" help:"Run teams of agents, watch them, and decide on their tools."`
	Tail        tailCmd        `cmd:"" help:"Show the events of a session, or of everything, as they happen."`
	Bootstrap   bootstrapCmd   `cmd:"" help:"Make the streams of an installation whose processes only verify them."`
	Audit       auditCmds      `cmd:"" help:"Show who did what: the audit log. \"audit verify\" checks its chains."`
	Backup      backupCmd      `cmd:"" help:"Copy all streams and buckets into a folder, while everything works."`
	Restore     restoreCmd     `cmd:"" help:"Put a backup back into an empty NATS."`
	Token       tokenCmd       `cmd:"" help:"Show the token with which web pages may use a running \"waggle up\" without authentication."`
	Keys        keysCmd        `cmd:"" help:"Make the keys with which each role logs in to NATS."`
	Doctor      doctorCmd      `cmd:"" help:"Check configuration and installation, and say what to do."`
	Healthcheck healthcheckCmd `cmd:"" help:"Exit with 0 if the process at --addr is ready."`
	Version     versionCmd     `cmd:"" help:"Show the version."`

	Completion kongcompletion.Completion `cmd:"" help:"Print what completes commands in bash, zsh or fish."`
}

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

func (u usageError) Unwrap() error { return u.error }

func run(args []string, std streams) int {
	parser, err := newParser(std)
	if err != nil {
		return report(std.err, err)
	}
	kongcompletion.Register(parser)
	ctx, err := parser.Parse(args)
	if err != nil {
		return report(std.err, usageError{fmt.Errorf("%w (waggle --help lists the commands)", err)})
	}
	return report(std.err, ctx.Run())
}

// newParser returns the parser of the command line.
func newParser(std streams) (*kong.Kong, error) {
	return kong.New(
		&cli{}, kong.Name("waggle"), kong.Writers(std.out, std.err),
		kong.Description("The backbone that multi-agent applications run on."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Bind(std),
	)
}

// report prints the error and returns the exit code for it.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if !errors.Is(err, errSilent) {
		_, _ = fmt.Fprintln(w, "waggle:", terminal.Strip(err.Error())) // may quote a server
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}
