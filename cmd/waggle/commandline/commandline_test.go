package commandline_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/commandline"
)

type common struct {
	URL  string  `name:"url" default:"ws://x" env:"COMMANDLINE_URL" placeholder:"URL" help:"The server (${env})."`
	Addr *string `help:"Where to listen."`
	On   *bool   `help:"Turn it on."`
}

type doCmd struct {
	common
	Words  []string      `arg:"" help:"What to do."`
	List   []string      `required:"" placeholder:"ITEM,..." help:"Items."`
	Wait   time.Duration `short:"w" default:"2m" help:"How long to wait, which takes so many words to explain that they need a line of their own."`
	JSON   bool          `name:"json" help:"As JSON."`
	Follow bool          `negatable:"" default:"true" help:"Go on."`
}

type showCmd struct {
	ID   string `arg:"" help:"The thing."`
	More string `arg:"" optional:"" placeholder:"KIND/ID" help:"Another."`
}

type groupCmd struct {
	Show showCmd `cmd:"" default:"withargs" help:"Show a thing."`
	Drop struct {
		Force bool
	} `cmd:"" help:"Drop a thing."`
}

type only struct {
	Show showCmd `cmd:"" help:"Show it."`
}

type root struct {
	Do       doCmd    `cmd:"" help:"Do a thing."`
	DryGroup groupCmd `cmd:"" help:"Things."`
	Only     only     `cmd:"" help:"More things."`
}

// given runs the arguments and returns the struct of the command.
func given(t *testing.T, args ...string) (any, error) {
	t.Helper()
	var got any
	var out bytes.Buffer
	err := commandline.New(new(root), "tool", "A tool.", &out, func(c any) error { got = c; return nil }).Run(args)
	return got, err
}

func TestFlagsAndArguments(t *testing.T) {
	addr, on := "a", true
	got, err := given(t, "do", "--addr", "a", "x", "--list=a,b", "-w", "1s", "--on", "--list", "c", "--no-follow", "--json", "--", "-y")
	require.NoError(t, err)
	require.Equal(t, &doCmd{
		common: common{URL: "ws://x", Addr: &addr, On: &on}, Words: []string{"x", "-y"}, List: []string{"a", "b", "c"}, Wait: time.Second, JSON: true,
	}, got)

	got, err = given(t, "do", "x", "--list=a", "--on=false")
	require.NoError(t, err)
	on = false
	require.Equal(t, &doCmd{common: common{URL: "ws://x", On: &on}, Words: []string{"x"}, List: []string{"a"}, Wait: 2 * time.Minute, Follow: true}, got)

	got, err = given(t, "dry-group", "id")
	require.NoError(t, err)
	require.Equal(t, &showCmd{ID: "id"}, got)
	got, err = given(t, "dry-group", "show", "id", "k/i")
	require.NoError(t, err)
	require.Equal(t, &showCmd{ID: "id", More: "k/i"}, got)
	_, err = given(t, "dry-group", "drop", "--force")
	require.NoError(t, err)
}

func TestTheEnvironmentCountsWithoutTheFlag(t *testing.T) {
	t.Setenv("COMMANDLINE_URL", "ws://env")
	got, err := given(t, "do", "x", "--list=a")
	require.NoError(t, err)
	require.Equal(t, "ws://env", got.(*doCmd).URL)
	got, err = given(t, "do", "x", "--list=a", "--url=ws://flag")
	require.NoError(t, err)
	require.Equal(t, "ws://flag", got.(*doCmd).URL)
}

func TestWrongArgumentsAreUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "specify a command: do, dry-group, only, completion"},
		{[]string{"nothing"}, `unknown command "nothing"; choose from do, dry-group, only, completion`},
		{[]string{"only"}, "specify a command: show"},
		{[]string{"only", "x"}, `unknown command "x"; choose from show`},
		{[]string{"do", "--list=a"}, "missing argument WORDS; usage: tool do WORDS... [flags]"},
		{[]string{"only", "show"}, "missing argument ID; usage: tool only show ID [KIND/ID] [flags]"},
		{[]string{"do", "x"}, `required flag(s) "list" not set`},
		{[]string{"od"}, `unknown command "od": did you mean do?`},
		{[]string{"only", "shwo"}, `unknown command "shwo": did you mean show?`},
		{[]string{"do", "x", "--list=a", "--oddity"}, "unknown flag: --oddity"},
		{[]string{"do", "x", "--list=a", "--wai=1s"}, "unknown flag: --wai: did you mean --wait?"},
		{[]string{"do", "x", "--list=a", "-q"}, "unknown shorthand flag: 'q' in -q"},
		{[]string{"do", "x", "--list=a", "--wait=soon"}, `invalid argument "soon"`},
		{[]string{"do", "x", "--list=a", "--on=maybe"}, `invalid argument "maybe"`},
		{[]string{"only", "show", "1", "2", "3"}, `unexpected argument "3"`},
	} {
		_, err := given(t, c.args...)
		_, ok := errors.AsType[commandline.UsageError](err)
		require.True(t, ok, "%q: %v", c.args, err)
		require.ErrorContains(t, err, c.want)
	}
}

func TestAUsageErrorNamesTheCommand(t *testing.T) {
	for command, args := range map[string][]string{
		"tool": {"nothing"}, "tool do": {"do", "x", "--list=a", "--wiat=1s"}, "tool only": {"only", "x"}, "tool only show": {"only", "show", "1", "2", "3"},
	} {
		_, err := given(t, args...)
		wrong, ok := errors.AsType[commandline.UsageError](err)
		require.True(t, ok, "%q: %v", args, err)
		require.Equal(t, command, wrong.Command)
	}
}

func TestErrorsOfTheWorkAreReturnedAsTheyAre(t *testing.T) {
	want := errors.New("broken")
	p := commandline.New(new(root), "tool", "A tool.", new(bytes.Buffer), func(any) error { return want })
	require.Equal(t, want, p.Run([]string{"only", "show", "1"}))
}

func TestHelpListsCommandsByTheirGroups(t *testing.T) {
	var out bytes.Buffer
	p := commandline.New(new(struct {
		Do   doCmd    `cmd:"" group:"Work" help:"Do a thing."`
		Show groupCmd `cmd:"" group:"Look" help:"Things."`
		Only only     `cmd:"" group:"Work" help:"More things."`
	}), "tool", "A tool.", &out, nil)
	p.Root.Example = "  tool do x\n"
	require.NoError(t, p.Run([]string{"--help"}))
	require.Contains(t, out.String(), `
Work:
  do    Do a thing.
  only  More things.

Look:
  show  Things.

Examples:
  tool do x

"tool COMMAND --help" shows more about a command.
`)
}

func TestHelp(t *testing.T) {
	help := func(args ...string) string {
		var out bytes.Buffer
		require.NoError(t, commandline.New(new(root), "tool", "A tool.", &out, nil).Run(args))
		return out.String()
	}
	require.Equal(t, `A tool.

Usage: tool COMMAND [flags]

Flags:
  -h, --help   Show this help.

Commands:
  do              Do a thing.
  dry-group show  Show a thing.
  dry-group drop  Drop a thing.
  only show       Show it.
  completion      Generate a shell completion script.

"tool COMMAND --help" shows more about a command.
`, help("--help"))
	require.Equal(t, help("do", "--help"), help("help", "do"))
	require.Equal(t, `Do a thing.

Usage: tool do WORDS... [flags]

Flags:
  -h, --help            Show this help.
      --url URL         The server (COMMANDLINE_URL). (default ws://x)
      --addr string     Where to listen.
      --on              Turn it on.
      --list ITEM,...   Items.
  -w, --wait duration   How long to wait, which takes so many words to explain that they need
                        a line of their own. (default 2m0s)
      --json            As JSON.
      --follow          Go on. (default true)
      --no-follow       The opposite of --follow.
`, help("do", "--help"))
	require.Contains(t, help("only", "show", "--help"), "Usage: tool only show ID [KIND/ID] [flags]\n")
}
