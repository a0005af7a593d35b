package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/tasks"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

type agentsCmd struct{ listFlags }

// Run implements the command.
func (c *agentsCmd) Run(std streams) error { return c.list(std, tasks.WriteAgents, "agents", nil) }

type tasksCmd struct {
	List   tasksListCmd   `cmd:"" help:"List tasks, newest first."`
	Show   tasksShowCmd   `cmd:"" help:"Show a task and its result."`
	Create tasksCreateCmd `cmd:"" help:"Submit a task to an agent and wait for the result."`
	Watch  tasksWatchCmd  `cmd:"" help:"Watch one of your tasks until it ends."`
	Tell   tasksTellCmd   `cmd:"" help:"Send a message to a task's agent, or answer its question."`
	Cancel tasksCancelCmd `cmd:"" help:"Stop a task."`
}

type tasksListCmd struct{ listFlags }

// Run implements the command.
func (c *tasksListCmd) Run(std streams) error { return c.list(std, tasks.WriteTasks, "tasks", nil) }

type tasksShowCmd struct {
	answerFlags
	ID string `arg:"" help:"The task."`
}

// Run implements the command.
func (c *tasksShowCmd) Run(std streams) error { return c.get(std, tasks.WriteTask, "tasks", c.ID) }

// clientFlags say which client of the swarm a command is.
type clientFlags struct {
	gatewayFlags
	Identity string `env:"WAGGLE_IDENTITY" help:"File that stores your client identity (${env}; waggle/clients.json in your configuration folder)." placeholder:"FILE"`
}

// connected runs f as a client, until it returns or is interrupted.
func (c clientFlags) connected(event func(swarm.Event), f func(context.Context, *tasks.Client) error) (err error) {
	ctx, stop := endable()
	defer stop()
	file := c.Identity
	if file == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return usageError{fmt.Errorf("give --identity: %w", err)}
		}
		file = filepath.Join(dir, "waggle", "clients.json")
	}
	client, err := tasks.Connect(ctx, tasks.Login{URL: c.URL, Token: c.Token, Identity: file}, event)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return f(ctx, client)
}

type tasksCreateCmd struct {
	clientFlags
	Data         []string      `arg:"" help:"The task as JSON or plain text; \"-\" reads it from standard input."`
	Agent        string        `help:"Name of the agent." placeholder:"NAME"`
	AgentID      string        `name:"agent-id" help:"Agent id, instead of a name." placeholder:"ID"`
	Capabilities []string      `help:"Any agent with all of these capabilities, instead of a name." placeholder:"WORD"`
	Type         string        `help:"Type of the task, for the agent." placeholder:"WORD"`
	Timeout      time.Duration `help:"Timeout of the task (the server's setting)." placeholder:"TIME"`
	Detach       bool          `help:"Print the task's id without waiting for the result."`
	JSON         bool          `name:"json" help:"Print the gateway's message about the end of the task."`
}

// Run implements the command.
func (c *tasksCreateCmd) Run(std streams) error {
	if c.Agent == "" && c.AgentID == "" && len(c.Capabilities) == 0 {
		return usageError{errors.New("specify the agent with --agent, --agent-id or --capabilities")}
	}
	text := strings.Join(c.Data, " ")
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(std.in, maxQuestion))
		if err != nil {
			return err
		}
		text = string(b)
	}
	return c.connected(tasks.Teller{W: std.err}.Event, func(ctx context.Context, client *tasks.Client) error {
		h, err := client.CreateTask(ctx, swarm.NewTask{
			AgentID: c.AgentID, AgentName: c.Agent, Capabilities: c.Capabilities, Type: c.Type, Data: tasks.Data(text), Timeout: c.Timeout,
		})
		if err != nil {
			return err
		}
		if c.Detach {
			_, err := fmt.Fprintln(std.out, terminal.Line(h.ID(), 200))
			return err
		}
		return tasks.Await(ctx, h, std.out, c.JSON)
	})
}

type tasksWatchCmd struct {
	clientFlags
	ID   string `arg:"" help:"The task."`
	JSON bool   `name:"json" help:"Print the gateway's messages as JSON, one per line."`
}

// Run implements the command.
func (c *tasksWatchCmd) Run(std streams) error {
	teller := tasks.Teller{W: std.err}
	if c.JSON {
		teller = tasks.Teller{W: std.out, JSON: true}
	}
	return c.connected(teller.Event, func(ctx context.Context, client *tasks.Client) error {
		h, err := client.Attach(ctx, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			_, err := h.Wait(ctx)
			return err
		}
		return tasks.Await(ctx, h, std.out, false)
	})
}

type tasksTellCmd struct {
	clientFlags
	ID   string   `arg:"" help:"The task."`
	Data []string `arg:"" help:"JSON or plain text."`
}

// Run implements the command.
func (c *tasksTellCmd) Run(streams) error {
	return c.connected(nil, func(ctx context.Context, client *tasks.Client) error {
		return client.TaskMessage(ctx, c.ID, tasks.Data(strings.Join(c.Data, " ")))
	})
}

type tasksCancelCmd struct {
	gatewayFlags
	ID     string `arg:"" help:"The task."`
	Reason string `help:"Reason to tell the agent." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print the gateway's response as JSON."`
}

// Run implements the command.
func (c *tasksCancelCmd) Run(std streams) error {
	body, err := json.Marshal(map[string]string{"reason": c.Reason})
	if err != nil {
		return err
	}
	return c.post(std, c.JSON, body, asked("stop", "tasks show ", c.ID), "tasks", c.ID, "cancel")
}
