package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

//go:generate go test -count=1 -run ^TestTheReferenceOfCommandsIsCurrent$ -update .

var update = flag.Bool("update", false, "write docs/site/reference/cli.md")

const commandsPage = "../../docs/site/reference/cli.md"

// TestTheReferenceOfCommandsIsCurrent: the page has the help of every command, word for word.
func TestTheReferenceOfCommandsIsCurrent(t *testing.T) {
	t.Setenv("COLUMNS", "100")
	var out strings.Builder
	out.WriteString("<!-- Generated from the commands by \"make generate\". Do not edit. -->\n\n# Command line\n\n" +
		"The help of every command, as `waggle COMMAND --help` shows it. Flags that name an environment variable take it as their default; " +
		"[Configuration](configuration.md) has the settings of `waggle up` and `waggle serve`.\n")
	helpOf(t, &out, newProgram(streams{}).Root)
	if *update {
		require.NoError(t, os.WriteFile(commandsPage, []byte(out.String()), 0o644))
		return
	}
	page, err := os.ReadFile(commandsPage)
	require.NoError(t, err)
	require.Equal(t, string(page), out.String(), "run \"make generate\"")
}

var trailing = regexp.MustCompile(`(?m) +$`)

// helpOf writes the help of a command and of those below it.
func helpOf(t *testing.T, out *strings.Builder, c *cobra.Command) {
	t.Helper()
	if c.Hidden || c.Name() == "help" {
		return
	}
	words := append(strings.Fields(c.CommandPath())[1:], "--help")
	var help bytes.Buffer
	require.Equal(t, 0, run(words, streams{out: &help, err: &help}), "%s: %s", c.CommandPath(), help.String())
	_, _ = fmt.Fprintf(out, "\n## %s\n\n```text\n%s\n```\n", c.CommandPath(), strings.TrimRight(trailing.ReplaceAllString(help.String(), ""), "\n"))
	for _, below := range c.Commands() {
		helpOf(t, out, below)
	}
}
