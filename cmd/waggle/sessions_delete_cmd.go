package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

// errNotConfirmed ends the command if no terminal can ask for a confirmation.
var errNotConfirmed = errors.New("deleting cannot be undone, and no terminal is there to ask: confirm with --yes")

// Run implements the command. A session that cannot be deleted does not keep the others.
func (c *sessionsDeleteCmd) Run(std streams) error {
	if !c.Yes {
		if !terminal.Is(std.in) {
			return usageError{errNotConfirmed}
		}
		if !confirmed(std.in, std.err, c.IDs) {
			_, err := fmt.Fprintln(std.err, "nothing was deleted")
			return err
		}
	}
	ctx, stop := endable()
	defer stop()
	w, err := c.open(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range c.IDs {
		done, err := w.DeleteSession(ctx, id)
		line := terminal.Line(id, 200)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", line, socket.Answered(err)))
		case done:
			_, _ = fmt.Fprintln(std.out, line+" deleted")
		default:
			_, _ = fmt.Fprintln(std.out, line+" will be deleted: the services have not finished yet")
		}
	}
	return errors.Join(failed...)
}

// confirmed asks whether the sessions are to be deleted.
func confirmed(in io.Reader, out io.Writer, ids []string) bool {
	what := "session " + terminal.Line(ids[0], 200)
	if len(ids) > 1 {
		what = fmt.Sprintf("%d sessions", len(ids))
	}
	_, _ = fmt.Fprintf(out, "Delete %s with all events? This cannot be undone. [y/N] ", what)
	line, _ := bufio.NewReader(in).ReadString('\n') // an end of input is a no
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
