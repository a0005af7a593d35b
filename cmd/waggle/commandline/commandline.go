// Package commandline makes commands of cobra from structs: a field is a flag, an argument or a command, and its tags
// describe it.
//
//	cmd:""            a command: the field is a struct; default:"" on it: its flags and its work are the parent's, too
//	group:"…"         the heading below which help lists the command; with headings it lists no commands below commands
//	arg:""            an argument: a string, or the rest as []string; optional:"" if it may be missing
//	help:"…"          what help says; ${env} in it is the variable's name
//	name:"…"          the name, where it is not the field's in kebab case
//	short:"x"         the flag's letter
//	placeholder:"…"   stands for the value in help
//	default:"…"       the value without the flag
//	env:"NAME"        the environment variable that holds the value without the flag
//	required:""       the flag must be given
//	negatable:""      --no-NAME is the opposite
//
// Flags are bool, string, []string (separated by commas, or repeated), time.Duration, and pointers to bool and string,
// which are nil without the flag. Embedded structs share their fields with the command. Other fields panic.
//
// Go's linker removes methods that are never called, but only from programs in which no reachable code looks methods up by
// a name that is not a constant. Libraries with templates (kong, the pages of gRPC's tracing) and complete API clients took
// 35 MB of a binary of 76 MB for that reason. So the command line is cobra's, clients of model providers are structs of the
// members in use, and the build tag grpcnotrace removes gRPC's pages. go build -ldflags=-dumpdep names what reaches
// reflect.Value.MethodByName.
package commandline

import (
	"errors"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
)

// Program is a tree of commands.
type Program struct {
	Root *cobra.Command
	work func(any) error
	err  error // of the work
}

// UsageError is wrong arguments.
type UsageError struct {
	error
	Command string // the command whose help tells what is right, as "waggle up"
}

// Unwrap returns the reason.
func (e UsageError) Unwrap() error { return e.error }

// New returns the commands that the struct describes. work gets a pointer to the struct of the command that was
// given. Help is written to out.
func New(root any, name, about string, out io.Writer, work func(any) error) *Program {
	cobra.EnableCommandSorting = false // the order of the fields is the order of help
	p := &Program{work: work}
	p.Root = p.command(reflect.ValueOf(root).Elem(), name, about)
	p.Root.SilenceErrors, p.Root.SilenceUsage = true, true
	p.Root.SetFlagErrorFunc(unknownFlag)
	p.Root.SetOut(out)
	p.Root.SetErr(out)
	p.Root.SetUsageFunc(usage)
	p.Root.InitDefaultHelpCmd()
	p.Root.InitDefaultCompletionCmd()
	for _, c := range p.Root.Commands() {
		switch c.Name() {
		case "help":
			c.Hidden = true // the last line of help names --help
		case "completion":
			c.Short = "Generate a shell completion script."
		}
	}
	return p
}

// Run does the work of the command that the arguments name. It returns the work's error, or UsageError.
func (p *Program) Run(args []string) error {
	p.Root.SetArgs(args)
	p.err = nil
	if c, err := p.Root.ExecuteC(); err != nil && p.err == nil {
		return UsageError{err, c.CommandPath()}
	}
	return p.err
}

// command returns the command of a struct with all commands below.
func (p *Program) command(v reflect.Value, name, help string) *cobra.Command {
	c := &cobra.Command{Use: name, Short: help, DisableFlagsInUseLine: true}
	c.Flags().SortFlags = false
	c.Flags().BoolP("help", "h", false, "Show this help.")
	n := node{Command: c, flags: c.Flags()}
	work := p.fields(&n, v)
	c.Use += n.usage()
	c.Args = n.check
	c.RunE = func(c *cobra.Command, args []string) error {
		if !work.IsValid() {
			return errors.New("specify a command: " + strings.Join(children(c), ", "))
		}
		if err := n.environment(os.LookupEnv); err != nil {
			return err
		}
		n.assign(args)
		p.err = p.work(work.Addr().Interface())
		return p.err
	}
	return c
}

// fields adds the fields of a struct to a command, and returns the struct whose work is the command's: the zero value
// for a command that has others and no default.
func (p *Program) fields(n *node, v reflect.Value) (work reflect.Value) {
	work = v
	for i := range v.NumField() {
		f, fv := v.Type().Field(i), v.Field(i)
		switch {
		case has(f, "cmd"):
			below := p.command(fv, nameOf(f), f.Tag.Get("help"))
			n.join(below, f.Tag.Get("group"))
			n.AddCommand(below)
			if work == v {
				work = reflect.Value{}
			}
			if has(f, "default") {
				work = p.fields(n, fv)
			}
		case f.Anonymous:
			p.fields(n, fv)
		case has(f, "arg"):
			n.arguments = append(n.arguments, argument{value: fv, name: labelOf(f), help: f.Tag.Get("help"), optional: has(f, "optional")})
		case f.IsExported():
			n.flag(f, fv)
		}
	}
	return work
}
