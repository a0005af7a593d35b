// Package sdk holds the promises that all clients of Waggle keep, as data. Each is written once, as a case: what a program does, how the
// server behaves, and what the program sees of it. The clients for Go, TypeScript and Python run every case; package judge plays the
// server and compares.
//
// docs/SDKS.md lists the cases. A new one needs no code unless its program does what no other does.
package sdk

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

//go:embed cases/*.json
var files embed.FS

// Group is a file of cases.
type Group struct {
	Title string `json:"title"`
	Cases []Case `json:"cases"`
}

// Case is a promise, and how it is tried.
type Case struct {
	Name    string `json:"name"`    // unique
	Promise string `json:"promise"` // a sentence
	// Server is what the server answers, for each operation in order; absent: the case runs against a real server.
	Server []Exchange `json:"server,omitempty"`
	// Real starts a real server: shared, which no case stops, or own.
	Real    string  `json:"real,omitempty"`
	Client  Client  `json:"client,omitzero"`
	Program []Step  `json:"program"`
	Sees    []Sight `json:"sees"`             // of each step, in order. Members that are absent may have any value
	Pauses  []int   `json:"pauses,omitempty"` // those of a second and more between attempts, in whole seconds
}

// Client says how the program makes its client. Pauses between attempts are at most some milliseconds.
type Client struct {
	Tokens []string `json:"tokens,omitempty"` // one: that token; several: a function that returns them in order, and then the last one
	// Away is the number of gateways at which nothing listens that come before the server in the list of addresses.
	Away int `json:"away,omitempty"`
}

// Step is one thing that the program does. It waits until that is done before the next step.
type Step struct {
	Do string `json:"do"` // an operation of the list in docs/SDKS.md, or tell

	Session    string   `json:"session,omitempty"`
	Task       string   `json:"task,omitempty"`
	Team       string   `json:"team,omitempty"`
	Step       string   `json:"step,omitempty"`
	Log        string   `json:"log,omitempty"` // KIND/ID. A second read of it continues the first
	After      uint64   `json:"after,omitempty"`
	Until      uint64   `json:"until,omitempty"`  // read: the sequence of the last event to wait for
	Types      []string `json:"types,omitempty"`  // read: what is seen are the events of these types; live: what is asked for
	Events     int      `json:"events,omitempty"` // live: how many to wait for
	TypeOf     string   `json:"type,omitempty"`   // read: wait for an event of this type instead of a sequence
	Timeout    int      `json:"timeout_ms,omitempty"`
	Method     string   `json:"method,omitempty"`
	Path       string   `json:"path,omitempty"`
	ID         string   `json:"id,omitempty"`
	Run        string   `json:"run,omitempty"` // a message is sent as the run of this name; further steps name it
	Text       string   `json:"text,omitempty"`
	Mode       string   `json:"mode,omitempty"`
	Confirm    bool     `json:"confirm,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	Question   string   `json:"question,omitempty"` // an id in the inbox; first or second: a question that the program has read
	Approve    bool     `json:"approve,omitempty"`
	Feedback   string   `json:"feedback,omitempty"`
	Agent      string   `json:"agent,omitempty"`
	Capability string   `json:"capability,omitempty"` // create_task: of the agent, instead of its name
	Data       any      `json:"data,omitempty"`
	File       string   `json:"file,omitempty"`   // digest or id of a file
	Attach     string   `json:"attach,omitempty"` // send: the text of a file note.txt that comes with the message
	Steps      []string `json:"steps,omitempty"`
	Word       string   `json:"word,omitempty"` // tell: see judge
	None       bool     `json:"none,omitempty"` // questions: list them until none is open, since the list lags the log
}

// Sight is what a step has shown the program. A step that fails shows an error alone.
type Sight map[string]any

// Exchange is one request and its answer.
type Exchange struct {
	On   string `json:"on"`            // an operation of the HTTP API by its id in docs/openapi.json
	Want *Want  `json:"want,omitzero"` // absent: any request

	Hold       string            `json:"hold,omitempty"` // the answer waits for this word of the program
	Lost       bool              `json:"lost,omitempty"` // the connection ends without an answer
	May        bool              `json:"may,omitempty"`  // the request may not come, because the program gives up before
	Status     int               `json:"status,omitempty"`
	Header     map[string]string `json:"header,omitempty"`
	RetryAfter string            `json:"retry_after,omitempty"` // seconds, or "in N": a date N seconds ahead
	Problem    string            `json:"problem,omitempty"`     // the answer is a problem document with this code
	Field      string            `json:"field,omitempty"`       // of the problem
	JSON       json.RawMessage   `json:"json,omitempty"`
	Text       string            `json:"text,omitempty"` // the body as it is
	Size       int               `json:"size,omitempty"` // length of the body in bytes, filled with a pattern
	Gzip       bool              `json:"gzip,omitempty"`
	Cut        bool              `json:"cut,omitempty"` // the connection ends before the last byte of the body

	Frames []Frame `json:"frames,omitempty"` // of a stream
	Line   string  `json:"line,omitempty"`   // the end of the lines of frames; \n if absent
	BOM    bool    `json:"bom,omitempty"`    // the stream begins with a byte order mark
	Chunk  int     `json:"chunk,omitempty"`  // bytes of each packet of the stream; absent: each frame is one
	End    string  `json:"end,omitempty"`    // of a stream: open (default: until the program leaves), cut (the connection ends), done (the answer ends)
}

// Want is what a request has to have. Absent members may be anything.
type Want struct {
	After *uint64        `json:"after,omitempty"`
	Token *string        `json:"token,omitempty"`
	Query map[string]any `json:"query,omitempty"`
	Body  map[string]any `json:"body,omitempty"`
	// SameID says that the body has the same id as that of the request before of this operation.
	SameID bool `json:"same_id,omitempty"`
}

// Frame is a message of a stream: an event, unless Raw, Comment, Problem or Gap is set.
type Frame struct {
	Seq  uint64         `json:"seq,omitempty"`
	From uint64         `json:"from,omitempty"`
	Type string         `json:"type,omitempty"` // message.delta if absent
	Data map[string]any `json:"data,omitempty"`
	Size int            `json:"size,omitempty"` // of the text of a delta, in bytes
	Name string         `json:"name,omitempty"` // of the message; the type if absent
	Live bool           `json:"live,omitempty"` // an announcement: it has no id

	Raw     string         `json:"raw,omitempty"` // in place of an event; its lines end as they are
	Comment string         `json:"comment,omitempty"`
	Problem map[string]any `json:"problem,omitempty"`
	Gap     int            `json:"gap,omitempty"`

	Hold string `json:"hold,omitempty"` // the frame waits for this word of the program
	Cut  int    `json:"cut,omitempty"`  // the connection ends after this many bytes of the frame; -1: within its first character of several bytes
}

// Load returns all groups of cases. A member that no type above has is an error.
func Load() ([]Group, error) {
	names, err := files.ReadDir("cases")
	if err != nil {
		return nil, fmt.Errorf("list the cases: %w", err)
	}
	known := map[string]bool{}
	groups := make([]Group, 0, len(names))
	for _, n := range names {
		raw, err := files.ReadFile("cases/" + n.Name())
		if err != nil {
			return nil, fmt.Errorf("read the cases: %w", err)
		}
		var g Group
		if err := strict(raw, &g); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name(), err)
		}
		for _, c := range g.Cases {
			if err := c.check(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", n.Name(), c.Name, err)
			}
			if known[c.Name] {
				return nil, fmt.Errorf("%s: two cases have the name %s", n.Name(), c.Name)
			}
			known[c.Name] = true
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

// check returns what is wrong with a case.
func (c Case) check() error {
	switch {
	case c.Name == "" || c.Promise == "":
		return errors.New("a case has a name and a promise")
	case (len(c.Server) > 0) == (c.Real != ""):
		return errors.New("a case has either a server or a real one")
	case c.Real != "" && c.Real != RealShared && c.Real != RealOwn:
		return fmt.Errorf("real is %s or %s", RealShared, RealOwn)
	case len(c.Sees) != len(c.Program):
		return fmt.Errorf("%d steps, and what is seen of %d", len(c.Program), len(c.Sees))
	}
	for _, s := range c.Program {
		if !slices.ContainsFunc(Operations, func(o Operation) bool { return o.Name == s.Do }) && s.Do != Tell {
			return fmt.Errorf("no operation %s", s.Do)
		}
	}
	for _, x := range c.Server {
		if _, ok := Routes[x.On]; !ok {
			return fmt.Errorf("no route %s", x.On)
		}
	}
	return nil
}

// Values of Case.Real.
const (
	RealShared = "shared"
	RealOwn    = "own"
)

// Tell is the step with which the program tells the judge a word.
const Tell = "tell"
