package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/sessions"
	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

type sessionsCmd struct {
	List   sessionsListCmd   `cmd:"" help:"List sessions, newest first."`
	Show   sessionsShowCmd   `cmd:"" help:"Show a session and its runs."`
	Export sessionsExportCmd `cmd:"" help:"Export the signed state of a session, for import elsewhere."`
	Import sessionsImportCmd `cmd:"" help:"Resume an exported session. Requires the key that signed it."`
	Cancel sessionsCancelCmd `cmd:"" help:"Stop the active run of a session. The session stays usable."`
	Delete sessionsDeleteCmd `cmd:"" help:"Stop sessions and delete their logs permanently."`
}

// gatewayFlags name the gateway and the credentials.
type gatewayFlags struct {
	URL   string `name:"url" default:"ws://127.0.0.1:9000/ws" env:"WAGGLE_URL" help:"The gateway (${env})." placeholder:"URL"`
	Token string `env:"WAGGLE_TOKEN" help:"API key or JWT (${env} keeps it out of the process list)." placeholder:"TOKEN"`
}

// warn writes a warning if others can read the credentials on their way.
func (g *gatewayFlags) warn(std streams) error {
	if g.Token != "" && socket.Readable(g.URL) {
		_, err := fmt.Fprintln(std.err, "warning: the token travels unencrypted to "+terminal.Line(config.RedactURLs(g.URL), 200)+"; use a wss:// URL")
		return err
	}
	return nil
}

// open returns the gateway.
func (g gatewayFlags) open(ctx context.Context) (*waggle.Client, error) {
	w, err := waggle.Open(ctx, g.URL, waggle.Options{Token: g.Token, Language: terminal.Language(os.Getenv), Hasty: true})
	if err != nil {
		return nil, usageError{err}
	}
	return w, nil
}

// ask makes a request and writes the answer: as JSON, or formatted for people.
func (g gatewayFlags) ask(
	std streams, asJSON bool,
	request func(context.Context, *waggle.Client) (json.RawMessage, error),
	write func(io.Writer, json.RawMessage, time.Time) error,
) error {
	ctx, stop := endable()
	defer stop()
	w, err := g.open(ctx)
	if err != nil {
		return err
	}
	raw, err := request(ctx, w)
	if err != nil {
		return socket.Answered(err)
	}
	if asJSON {
		_, err := std.out.Write(append(terminal.ASCII(raw), '\n'))
		return err
	}
	return write(std.out, raw, time.Now())
}

// post sends a POST request to the path below /api/v1.
func (g gatewayFlags) post(
	std streams, asJSON bool, body []byte, write func(io.Writer, json.RawMessage, time.Time) error, path ...string,
) error {
	return g.ask(std, asJSON, func(ctx context.Context, w *waggle.Client) (json.RawMessage, error) {
		return w.Call(ctx, http.MethodPost, body, path...)
	}, write)
}

// asked says of an order that has been given which command shows what came of it.
func asked(what, look, id string) func(io.Writer, json.RawMessage, time.Time) error {
	return func(w io.Writer, _ json.RawMessage, _ time.Time) error {
		_, err := fmt.Fprintln(w, "asked to "+what+"; \"waggle "+look+terminal.Line(id, 200)+"\" shows whether it has")
		return err
	}
}

// answerFlags are the flags of commands that print the gateway's answer.
type answerFlags struct {
	gatewayFlags
	JSON bool `name:"json" help:"Print the gateway's response as JSON."`
}

// get prints the answer to a GET request to the path below /api/v1.
func (a answerFlags) get(std streams, write func(io.Writer, json.RawMessage, time.Time) error, path ...string) error {
	return a.ask(std, a.JSON, func(ctx context.Context, w *waggle.Client) (json.RawMessage, error) {
		return w.Call(ctx, http.MethodGet, nil, path...)
	}, write)
}

// listFlags are those of a command that prints a list.
type listFlags struct {
	answerFlags
	Limit uint   `help:"Maximum number of records to print (all)." placeholder:"N"`
	State string `help:"Only those in this state." placeholder:"STATE"`
}

// list prints a list of the API. Its member of the answer has the same name. Without a query it reads the states itself.
func (l listFlags) list(std streams, write func(io.Writer, json.RawMessage, time.Time) error, name string, query url.Values) error {
	some := waggle.Some{Query: query, Most: int(min(l.Limit, math.MaxInt32))}
	if query == nil && l.State != "" {
		some.Fits = func(raw json.RawMessage) bool {
			var one struct {
				Status string `json:"status"`
			}
			return json.Unmarshal(raw, &one) == nil && strings.EqualFold(one.Status, l.State)
		}
	}
	more := false
	err := l.ask(std, l.JSON, func(ctx context.Context, w *waggle.Client) (json.RawMessage, error) {
		raw, err := w.ListSome(ctx, some, name, name)
		var page struct {
			More bool `json:"more"`
		}
		more = err == nil && json.Unmarshal(raw, &page) == nil && page.More
		return raw, err
	}, write)
	if err == nil && more && !l.JSON {
		_, err = fmt.Fprintln(std.err, "more exist: give a larger --limit")
	}
	return err
}

type sessionsListCmd struct {
	listFlags
	Search string `help:"Only those whose first message contains this text." placeholder:"TEXT"`
}

// Run implements the command.
func (c *sessionsListCmd) Run(std streams) error {
	q := url.Values{}
	for name, v := range map[string]string{"state": c.State, "q": c.Search} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if c.State == api.SessionClosed {
		q.Del("state")
		q.Set("status", api.SessionClosed)
	}
	return c.list(std, sessions.WriteList, "sessions", q)
}

type sessionsShowCmd struct {
	answerFlags
	ID string `arg:"" help:"The session."`
}

// Run implements the command.
func (c *sessionsShowCmd) Run(std streams) error {
	return c.get(std, sessions.WriteDetail, "sessions", c.ID)
}

type sessionsCancelCmd struct {
	answerFlags
	ID string `arg:"" help:"The session."`
}

// Run implements the command.
func (c *sessionsCancelCmd) Run(std streams) error {
	return c.post(std, c.JSON, nil, asked("stop", "tail session/", c.ID), "sessions", c.ID, "cancel")
}

type sessionsExportCmd struct {
	gatewayFlags
	ID     string `arg:"" help:"The session."`
	Output string `short:"o" help:"File to write instead of standard output, readable only by you." placeholder:"FILE"`
}

// Run implements the command.
func (c *sessionsExportCmd) Run(std streams) error {
	return c.ask(
		std, c.Output == "", func(ctx context.Context, w *waggle.Client) (json.RawMessage, error) {
			return w.ExportSession(ctx, c.ID)
		},
		func(w io.Writer, raw json.RawMessage, _ time.Time) error {
			if err := os.WriteFile(filepath.Clean(c.Output), raw, 0o600); err != nil {
				return err
			}
			_, err := fmt.Fprintln(w, "written to "+c.Output)
			return err
		})
}

type sessionsImportCmd struct {
	gatewayFlags
	File string `arg:"" help:"Output of \"sessions export\"; \"-\" reads it from standard input."`
}

// maxState is more than any state that a server exports.
const maxState = 64 << 20

// Run implements the command.
func (c *sessionsImportCmd) Run(std streams) error {
	in := std.in
	if c.File != "-" {
		f, err := os.Open(filepath.Clean(c.File))
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxState))
	if err != nil {
		return err
	}
	ctx, stop := endable()
	defer stop()
	w, err := c.open(ctx)
	if err != nil {
		return err
	}
	session, warnings, err := w.ImportSession(ctx, text)
	if err != nil {
		return socket.Answered(err)
	}
	for _, w := range warnings {
		_, _ = fmt.Fprintln(std.err, "warning: "+terminal.Line(w, 500))
	}
	_, err = fmt.Fprintln(std.out, terminal.Line(session, 200))
	return err
}

type sessionsDeleteCmd struct {
	gatewayFlags
	IDs []string `arg:"" name:"id" help:"The sessions."`
	Yes bool     `short:"y" help:"Do not ask for confirmation."`
}

// errNotConfirmed ends the command if no terminal can ask for a confirmation.
var errNotConfirmed = errors.New("deletion cannot be undone, and standard input is not a terminal: confirm with --yes")

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
