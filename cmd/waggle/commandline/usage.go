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
	all := leaves(c, "")
	if len(all) == 0 {
		return nil
	}
	longest := 0
	for _, l := range all {
		longest = max(longest, len(l.path))
	}
	var b strings.Builder
	for _, l := range all {
		fmt.Fprintf(&b, "  %-*s  ", longest, l.path)
		indent := strings.Repeat(" ", longest+4)
		b.WriteString(strings.ReplaceAll(ansi.Wordwrap(l.help, width-len(indent), ""), "\n", "\n"+indent) + "\n")
	}
	_, err := fmt.Fprintf(w, "\nCommands:\n%s\n\"%s COMMAND --help\" shows more about a command.\n", b.String(), c.CommandPath())
	return err
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
