// Command waggle is every part of Waggle in one binary: the server in one process
// or role by role, and the tools of the people who use and operate it.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/waggle-dev/waggle/cmd/waggle/commandline"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

// Exit codes, beside 0.
const (
	exitFailed = 1 // it was tried and failed
	exitUsage  = 2 // flags or configuration are wrong
)

type cli struct {
	ShowVersion bool `name:"version" help:"Show the version."`

	Up          upCmd          `cmd:"" help:"Run every role and an embedded NATS server in one process."`
	Serve       serveCmd       `cmd:"" help:"Run some roles against a NATS server."`
	Open        openCmd        `cmd:"" help:"Open the console of a running gateway in a browser."`
	Chat        chatCmd        `cmd:"" help:"Ask a question, or talk, in a session of the gateway."`
	Top         topCmd         `cmd:"" help:"Show sessions, questions, agents, tasks, teams and queues as they change, and answer questions."`
	Sessions    sessionsCmd    `cmd:"" help:"List, show, export, import and cancel sessions."`
	Agents      agentsCmd      `cmd:"" help:"List the agents of the swarm."`
	Tasks       tasksCmd       `cmd:"" help:"Give tasks to agents; list, show, watch and cancel them."`
	Teams       teamsCmd       `cmd:"" help:"Run teams of agents, watch them, and decide on their tools."`
	Tail        tailCmd        `cmd:"" help:"Show the events of a session, or of everything, as they happen."`
	Bootstrap   bootstrapCmd   `cmd:"" help:"Make the streams of an installation whose processes only verify them."`
	Audit       auditCmds      `cmd:"" help:"Show who did what: the audit log. \"audit verify\" checks its chains."`
	Backup      backupCmd      `cmd:"" help:"Copy all streams and buckets into a folder, while everything works."`
	Restore     restoreCmd     `cmd:"" help:"Put a backup back into an empty NATS."`
	Reindex     reindexCmd     `cmd:"" help:"Rebuild the lists of sessions, tasks and questions from the logs, while everything works."`
	Cells       cellsCmd       `cmd:"" help:"Show which cell serves which tenant, and move tenants between cells."`
	Token       tokenCmd       `cmd:"" help:"Show the token with which web pages may use a running \"waggle up\" without authentication."`
	Keys        keysCmd        `cmd:"" help:"Make the keys with which each role logs in to NATS."`
	Doctor      doctorCmd      `cmd:"" help:"Check configuration and installation, and say what to do."`
	Healthcheck healthcheckCmd `cmd:"" help:"Exit with 0 if the process at --addr is ready."`
	Version     versionCmd     `cmd:"" help:"Show the version."`
}

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

func (u usageError) Unwrap() error { return u.error }

func run(args []string, std streams) int {
	err := newProgram(std).Run(args)
	if wrong, ok := errors.AsType[commandline.UsageError](err); ok {
		err = usageError{fmt.Errorf("%w (see %s --help)", wrong, wrong.Command)}
	}
	return report(std.err, err)
}

// newProgram returns all commands.
func newProgram(std streams) *commandline.Program {
	root := new(cli)
	p := commandline.New(root, "waggle", "The backbone that multi-agent applications run on.", std.out, func(c any) error {
		if g, ok := c.(interface{ warn(streams) error }); ok {
			if err := g.warn(std); err != nil {
				return err
			}
		}
		r, ok := c.(interface{ Run(streams) error })
		if !ok {
			return fmt.Errorf("%T lacks a method Run", c)
		}
		return r.Run(std)
	})
	p.Root.RunE = versionFirst(root, std, p.Root.RunE)
	return p
}

// versionFirst shows the version for the flag that people try first.
func versionFirst(root *cli, std streams, otherwise func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if root.ShowVersion {
			return versionCmd{}.Run(std)
		}
		return otherwise(c, args)
	}
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
