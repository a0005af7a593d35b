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
	"github.com/waggle-dev/waggle/cmd/waggle/project"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

// Exit codes other than 0.
const (
	exitFailed = 1 // it was tried and failed
	exitUsage  = 2 // flags or configuration are wrong
)

type cli struct {
	ShowVersion bool `name:"version" help:"Show the version."`

	Up    upCmd    `cmd:"" group:"Start" help:"Run every role and an embedded NATS server in one process."`
	Demo  demoCmd  `cmd:"" group:"Start" help:"Run \"waggle up\" in a child process and open its console, which can kill it: see that nothing is lost."`
	Init  initCmd  `cmd:"" group:"Start" help:"Write settings, a Compose file and a file for keys into a folder, with which \"waggle up\" then runs there."`
	New   newCmd   `cmd:"" group:"Start" help:"Start a project from a template: a chat page, an agent, a team, a report, tools."`
	Serve serveCmd `cmd:"" group:"Start" help:"Run selected roles against a NATS server."`
	Open  openCmd  `cmd:"" group:"Start" help:"Open the console of a running gateway in a browser."`
	Docs  docsCmd  `cmd:"" group:"Start" help:"Show the documentation in a browser, offline."`

	Chat     chatCmd     `cmd:"" group:"Talk" help:"Ask a question or chat in a session of the gateway."`
	Sessions sessionsCmd `cmd:"" group:"Talk" help:"List, show, export, import, cancel and delete sessions."`
	Agents   agentsCmd   `cmd:"" group:"Talk" help:"List the agents of the swarm."`
	Tasks    tasksCmd    `cmd:"" group:"Talk" help:"Submit tasks to agents; list, show, watch and cancel them."`
	Teams    teamsCmd    `cmd:"" group:"Talk" help:"Run and watch teams of agents, and decide on their tool calls."`

	Top   topCmd    `cmd:"" group:"Watch" help:"Live overview of sessions, questions, agents, tasks, teams and queues; answer questions."`
	Tail  tailCmd   `cmd:"" group:"Watch" help:"Show the events of a session, or all events, live."`
	Audit auditCmds `cmd:"" group:"Watch" help:"Show the audit log. \"audit verify\" checks its integrity."`

	Connections connectionsCmd `cmd:"" group:"Watch" help:"List the connections of clients, what they watch, and which lag; for operators."`

	Doctor      doctorCmd      `cmd:"" group:"Operate" help:"Check the configuration and the installation, and suggest fixes."`
	Token       tokenCmd       `cmd:"" group:"Operate" help:"Show the token that lets web pages use a running \"waggle up\" without authentication."`
	Keys        keysCmd        `cmd:"" group:"Operate" help:"Generate the NATS keys for each role."`
	Bootstrap   bootstrapCmd   `cmd:"" group:"Operate" help:"Create the streams and buckets of an installation."`
	Backup      backupCmd      `cmd:"" group:"Operate" help:"Back up all streams and buckets to a folder while the installation runs."`
	Restore     restoreCmd     `cmd:"" group:"Operate" help:"Restore a backup into an empty NATS server."`
	Reindex     reindexCmd     `cmd:"" group:"Operate" help:"Rebuild the lists of sessions, tasks and questions from the logs while the installation runs."`
	Cells       cellsCmd       `cmd:"" group:"Operate" help:"Assign tenants to cells and move tenants between cells."`
	Healthcheck healthcheckCmd `cmd:"" group:"Operate" help:"Exit with 0 if the process at --addr is ready."`
	Version     versionCmd     `cmd:"" group:"Operate" help:"Show the version."`
}

// examples are the first commands that people need.
const examples = `  waggle demo                                   run everything here, open the console, and pull the plug
  waggle up                                     run everything here, with the console
  waggle chat "Which files are here?"           ask once; without words, talk
  waggle chat --plan "Compare these two files"  see the plan, approve it, watch its steps
  waggle teams run -f team.yaml "write a.md"    have a team do something
  waggle top                                    watch everything, and answer questions
  waggle sessions show ID                       look at what happened
  waggle doctor                                 find out what is wrong
  waggle docs                                   read on, offline
`

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

func (u usageError) Unwrap() error { return u.error }

func run(args []string, std streams) int {
	if err := project.Enter("."); err != nil {
		return report(std.err, usageError{err})
	}
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
	p.Root.Example = examples
	for _, c := range p.Root.Commands() {
		if c.GroupID == "" {
			c.GroupID = "Operate" // completion, which cobra adds
		}
	}
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
