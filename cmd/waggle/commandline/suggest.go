package commandline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// children returns the names of the commands below.
func children(c *cobra.Command) (names []string) {
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	return names
}

// unknownCommand returns the error for a name that no command below c has: with the names that are like it, or all names.
func unknownCommand(c *cobra.Command, name string) error {
	if like := alike(name, children(c)); len(like) > 0 {
		return fmt.Errorf("unknown command %q: did you mean %s?", name, strings.Join(like, " or "))
	}
	return fmt.Errorf("unknown command %q; choose from %s", name, strings.Join(children(c), ", "))
}

// unknownFlag adds the flags with a like name to the error for a flag that c does not have.
func unknownFlag(c *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	like := alike(unknown.GetSpecifiedName(), names)
	if len(like) == 0 {
		return err
	}
	return fmt.Errorf("%w: did you mean --%s?", err, strings.Join(like, " or --"))
}

// alike returns those names that a typing error may have meant: two letters away at most, or with it as their beginning.
func alike(name string, names []string) []string {
	if name == "" {
		return nil
	}
	of := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, n := range names {
		of.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	return of.SuggestionsFor(name)
}
