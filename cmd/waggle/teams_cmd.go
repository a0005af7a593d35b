package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/console"
	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/cmd/waggle/teams"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

type teamsCmd struct {
	List   teamsListCmd   `cmd:"" help:"List teams, newest first, and definitions that can be run by name."`
	Show   teamsShowCmd   `cmd:"" help:"Show a team, its members and its tasks."`
	Create teamsCreateCmd `cmd:"" help:"Create a team from a file or from a named definition."`
	Run    teamsRunCmd    `cmd:"" help:"Send a team a message and follow it until idle."`
	Watch  teamsWatchCmd  `cmd:"" help:"Watch a team."`
	Stop   teamsStopCmd   `cmd:"" help:"Stop the current work of a team or of one member. It stays usable."`
	Pause  teamsPauseCmd  `cmd:"" help:"Let the members finish their current work, then hold further messages back."`
	Resume teamsResumeCmd `cmd:"" help:"Resume a paused team."`
	Delete teamsDeleteCmd `cmd:"" help:"Stop a team and close it permanently."`
}

type teamsListCmd struct{ listFlags }

// Run implements the command.
func (c *teamsListCmd) Run(std streams) error { return c.list(std, teams.WriteList, "teams", nil) }

// teamFlags are those of a command that is about one team.
type teamFlags struct {
	answerFlags
	ID string `arg:"" help:"The team."`
}

// order asks the team for something and says what to look at.
func (t teamFlags) order(std streams, what string) error {
	return t.post(std, t.JSON, nil, asked(what, "teams show ", t.ID), "teams", t.ID, what)
}

type teamsShowCmd struct{ teamFlags }

// Run implements the command.
func (c *teamsShowCmd) Run(std streams) error { return c.get(std, teams.WriteTeam, "teams", c.ID) }

type teamsCreateCmd struct {
	gatewayFlags
	Name string `arg:"" optional:"" help:"Name of a team definition in the gateway's configuration."`
	File string `short:"f" help:"YAML or JSON file with a team definition; \"-\" reads it from standard input." placeholder:"FILE"`
	JSON bool   `name:"json" help:"Print the gateway's response as JSON."`
}

// Run implements the command.
func (c *teamsCreateCmd) Run(std streams) error {
	if (c.Name == "") == (c.File == "") {
		return usageError{errors.New("specify either NAME or -f FILE")}
	}
	return c.ask(
		std, c.JSON, func(ctx context.Context, a *waggle.Client) (json.RawMessage, error) {
			return found(ctx, a, std.in, c.Name, c.File)
		},
		func(w io.Writer, raw json.RawMessage, _ time.Time) error {
			v, err := teams.View(raw)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(w, terminal.Line(v.TeamID, 200))
			return err
		})
}

// found makes a team and returns the gateway's answer.
func found(ctx context.Context, a *waggle.Client, in io.Reader, name, file string) (json.RawMessage, error) {
	body, err := json.Marshal(map[string]string{"named": name})
	if file != "" {
		body, err = definition(in, file)
	}
	if err != nil {
		return nil, err
	}
	return a.Call(ctx, http.MethodPost, body, "teams")
}

// maxDefinition is more than any definition that a server takes.
const maxDefinition = 8 << 20

// definition returns the definition in the file, in the form of the gateway's API.
func definition(in io.Reader, file string) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(filepath.Clean(file))
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxDefinition))
	if err != nil {
		return nil, err
	}
	d, err := config.ReadTeam(text)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", file, err)}
	}
	return json.Marshal(d)
}

type teamsRunCmd struct {
	gatewayFlags
	Words  []string `arg:"" placeholder:"TEAM WORDS" help:"Team id or name of a definition, unless -f is used, then the message."`
	File   string   `short:"f" help:"YAML or JSON file with the definition of the team." placeholder:"FILE"`
	Target string   `help:"Member to address, as NODE/MEMBER in nested teams (the coordinator)." placeholder:"MEMBER"`
	Yes    bool     `help:"Run every tool without asking."`
	JSON   bool     `name:"json" help:"Print the gateway's frames as JSON, one per line."`
}

// Run implements the command.
func (c *teamsRunCmd) Run(std streams) error {
	words := c.Words
	if c.File == "" {
		words = words[1:]
	}
	text := strings.TrimSpace(strings.Join(words, " "))
	if text == "" {
		return usageError{errors.New("specify a message for the team")}
	}
	v, isNew, err := c.team(std.in)
	if err != nil {
		return socket.Answered(err)
	}
	return c.show(std, teams.Options{Team: v, All: isNew, Text: text, Target: c.Target, Yes: c.Yes}, c.JSON)
}

// team returns the team that is meant, and whether it has been made for this.
func (c *teamsRunCmd) team(in io.Reader) (v command.TeamView, isNew bool, err error) {
	ctx, stop := endable()
	defer stop()
	api, err := c.open(ctx)
	if err != nil {
		return v, false, err
	}
	name := c.Words[0]
	if c.File == "" {
		known, err := listed(ctx, api)
		if err != nil {
			return v, false, err
		}
		is := func(t command.TeamView) bool { return t.TeamID == name }
		if i := slices.IndexFunc(known.Teams, is); i >= 0 {
			return known.Teams[i], false, nil
		}
		if !slices.Contains(known.Named, name) {
			return v, false, usageError{fmt.Errorf("unknown team %q: use the id of a team, or the name of one in the gateway's "+
				"configuration (waggle teams list shows both), or -f FILE", name)}
		}
	}
	raw, err := found(ctx, api, in, name, c.File)
	if err != nil {
		return v, false, err
	}
	v, err = teams.View(raw)
	return v, true, err
}

func listed(ctx context.Context, api *waggle.Client) (command.TeamList, error) {
	raw, err := api.List(ctx, "teams", "teams")
	if err != nil {
		return command.TeamList{}, err
	}
	return teams.List(raw)
}

// show shows a team at the terminal.
func (g gatewayFlags) show(std streams, opt teams.Options, asJSON bool) error {
	ctx, interrupts, stop := interruptible()
	defer stop()
	screen := terminal.NewScreen(std.out, std.err)
	opt.URL, opt.Token, opt.Interrupts = g.URL, g.Token, interrupts
	opt.Live = terminal.Is(std.out) && terminal.Is(std.err)
	if !asJSON {
		_, _ = fmt.Fprintln(std.err, "team "+terminal.Line(opt.Team.TeamID, 200)+", "+terminal.Line(opt.Team.Name, 200)+", "+opt.Team.Status)
	} else {
		opt.Raw, opt.Live = std.out, false
	}
	return teams.Talk(ctx, opt, lines(std, console.Options{Screen: screen, Interrupts: interrupts}, ""), screen)
}

type teamsWatchCmd struct {
	gatewayFlags
	ID   string `arg:"" help:"The team."`
	All  bool   `help:"Start from the beginning instead of the work in progress."`
	JSON bool   `name:"json" help:"Print the gateway's frames as JSON, one per line."`
}

// Run implements the command.
func (c *teamsWatchCmd) Run(std streams) error {
	ctx := context.Background()
	api, err := c.open(ctx)
	if err != nil {
		return err
	}
	raw, err := api.Call(ctx, http.MethodGet, nil, "teams", c.ID)
	if err != nil {
		return socket.Answered(err)
	}
	v, err := teams.View(raw)
	if err != nil {
		return err
	}
	return c.show(std, teams.Options{Team: v, All: c.All}, c.JSON)
}

type teamsStopCmd struct {
	gatewayFlags
	ID     string `arg:"" help:"The team."`
	Target string `help:"Only this member, as NODE/MEMBER in nested teams." placeholder:"MEMBER"`
	Reason string `help:"Reason to show to viewers." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print the gateway's response as JSON."`
}

// Run implements the command.
func (c *teamsStopCmd) Run(std streams) error {
	body, err := json.Marshal(map[string]string{"target": c.Target, "reason": c.Reason})
	if err != nil {
		return err
	}
	return c.post(std, c.JSON, body, asked("stop", "teams show ", c.ID), "teams", c.ID, "stop")
}

type teamsPauseCmd struct{ teamFlags }

// Run implements the command.
func (c *teamsPauseCmd) Run(std streams) error { return c.order(std, "pause") }

type teamsResumeCmd struct{ teamFlags }

// Run implements the command.
func (c *teamsResumeCmd) Run(std streams) error { return c.order(std, "resume") }

type teamsDeleteCmd struct{ teamFlags }

// Run implements the command.
func (c *teamsDeleteCmd) Run(std streams) error {
	return c.ask(
		std, c.JSON, func(ctx context.Context, a *waggle.Client) (json.RawMessage, error) {
			return a.Call(ctx, http.MethodDelete, nil, "teams", c.ID)
		},
		asked("close", "teams show ", c.ID))
}
