package commandline

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// width bounds the lines of help, in columns.
const width = 100

// usage writes the help of a command: its usage line, its flags, and all commands below.
func usage(c *cobra.Command) error {
	w := c.OutOrStderr()
	line := c.CommandPath()
	if c.HasAvailableSubCommands() {
		line += " COMMAND"
	}
	line += strings.TrimPrefix(c.Use, c.Name()) + " [flags]"
	if _, err := fmt.Fprintf(w, "Usage: %s\n\nFlags:\n%s", line, c.Flags().FlagUsagesWrapped(width)); err != nil {
		return err
	}
	text := commands(c)
	if text == "" {
		return nil
	}
	if c.Example != "" {
		text += "\nExamples:\n" + strings.TrimRight(c.Example, "\n") + "\n"
	}
	_, err := fmt.Fprintf(w, "\n%s\n\"%s COMMAND --help\" shows more about a command.\n", text, c.CommandPath())
	return err
}

// commands lists the commands below a command: by their groups, or all of them with those below.
func commands(c *cobra.Command) string {
	if len(c.Groups()) == 0 {
		if all := leaves(c, ""); len(all) > 0 {
			return "Commands:\n" + list(all, longest(all))
		}
		return ""
	}
	width := 0
	byGroup := make([][]leaf, len(c.Groups()))
	for i, g := range c.Groups() {
		for _, below := range c.Commands() {
			if below.GroupID == g.ID && below.IsAvailableCommand() {
				byGroup[i] = append(byGroup[i], leaf{below.Name(), below.Short})
			}
		}
		width = max(width, longest(byGroup[i]))
	}
	var parts []string
	for i, g := range c.Groups() {
		parts = append(parts, g.Title+":\n"+list(byGroup[i], width))
	}
	return strings.Join(parts, "\n")
}

func longest(all []leaf) (n int) {
	for _, l := range all {
		n = max(n, len(l.path))
	}
	return n
}

// list returns a line for each command, whose help begins in one column.
func list(all []leaf, longest int) string {
	var b strings.Builder
	for _, l := range all {
		fmt.Fprintf(&b, "  %-*s  ", longest, l.path)
		indent := strings.Repeat(" ", longest+4)
		b.WriteString(strings.ReplaceAll(ansi.Wordwrap(l.help, width-len(indent), ""), "\n", "\n"+indent) + "\n")
	}
	return b.String()
}

// leaf is a command without others below.
type leaf struct{ path, help string }

func leaves(c *cobra.Command, above string) (all []leaf) {
	for _, below := range c.Commands() {
		path := above + below.Name()
		switch {
		case !below.IsAvailableCommand():
		case below.HasAvailableSubCommands() && below.Name() != "completion":
			all = append(all, leaves(below, path+" ")...)
		default:
			all = append(all, leaf{path, below.Short})
		}
	}
	return all
}
