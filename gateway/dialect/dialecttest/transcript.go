package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// transcript is one golden file, played.
type transcript struct {
	codec                    dialect.Codec
	client, bus              [][]byte
	intents, replies, frames [][]byte
	events                   []event.Event
	perEvent                 [][][]byte // frames of each of events
}

// transcripts runs every golden file, then checks that together they show every
// message type of the dialect.
func (c *checker) transcripts(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(c.Transcripts, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "no transcripts in %s", c.Transcripts)
	seen := map[string]bool{}
	for _, p := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(p), ".txtar"), func(t *testing.T) { c.transcript(t, p, seen) })
	}
	for _, kind := range append(append([]string(nil), c.Inbound...), c.Outbound...) {
		require.True(t, seen[kind], "no transcript shows %s", kind)
	}
}

func (c *checker) transcript(t *testing.T, path string, seen map[string]bool) {
	archive, err := txtar.ParseFile(path)
	require.NoError(t, err)
	tr := c.parse(t, archive)
	c.playClient(t, tr)
	c.playBus(t, tr)
	for _, f := range tr.client {
		seen[c.typeOf(f)] = true
	}
	for _, f := range append(append([][]byte(nil), tr.replies...), tr.frames...) {
		c.frame(t, f)
		seen[c.typeOf(f)] = true
	}
	Stateless(t, tr.codec.Encode, tr.events, tr.perEvent)
	c.resumable(t, tr.events, tr.perEvent)
	Compare(t, archive, path, Result{"intents", tr.intents}, Result{"replies", tr.replies}, Result{"frames", tr.frames})
}

func (c *checker) parse(t *testing.T, a *txtar.Archive) *transcript {
	t.Helper()
	require.NotEmpty(t, bytes.TrimSpace(a.Comment), "a transcript says what it shows")
	query, err := url.ParseQuery(strings.TrimSpace(string(Section(a, "query"))))
	require.NoError(t, err)
	tr := &transcript{client: Lines(Section(a, "client")), bus: Lines(Section(a, "bus"))}
	tr.codec, err = c.Dialect.Bind(query)
	require.NoError(t, err)
	return tr
}

func (c *checker) playClient(t *testing.T, tr *transcript) {
	in := c.inbound()
	for _, f := range tr.client {
		asked, intents, err := c.ask(t, tr.codec, f, in)
		if err == nil && asked != "" {
			tr.intents = append(tr.intents, []byte(asked))
			continue
		}
		if flt, ok := errors.AsType[*fault.Fault](err); ok {
			require.Empty(t, intents)
			tr.intents = append(tr.intents, []byte("fault "+flt.Error()))
			tr.replies = append(tr.replies, c.refusal(tr.codec, f, flt))
			continue
		}
		require.NoError(t, err, "an error of Decode is a fault")
		for _, i := range intents {
			Sound(t, i)
			raw, err := json.Marshal(ShowIntent(i))
			require.NoError(t, err)
			tr.intents = append(tr.intents, raw)
		}
	}
}

func (c *checker) playBus(t *testing.T, tr *transcript) {
	for _, line := range tr.bus {
		if line[0] == '!' {
			tr.frames = append(tr.frames, c.between(t, tr, string(line[1:]))...)
			continue
		}
		var e event.Event
		require.NoError(t, json.Unmarshal(line, &e), "%s", line)
		got := tr.codec.Encode(e)
		tr.frames = append(tr.frames, got...)
		if e.Sequence == 0 {
			continue // a direct message is in no log
		}
		Event(t, line)
		tr.events = append(tr.events, e)
		tr.perEvent = append(tr.perEvent, got)
	}
}

// between returns what a gateway says between events.
func (c *checker) between(t *testing.T, tr *transcript, what string) [][]byte {
	word, arg, _ := strings.Cut(what, " ")
	n, _ := strconv.ParseUint(arg, 10, 64)
	g := dialect.Greeting{SessionID: Session.Entity.String(), Now: Now, Seq: n}
	switch word {
	case "starting":
		return tr.codec.Greet(g)
	case "ready":
		g.Stage = dialect.Ready
		return tr.codec.Greet(g)
	case "truncated":
		return [][]byte{tr.codec.Truncated(n, Now)}
	}
	if c.Said != nil {
		return c.Said(t, tr.codec, tr.events, word, arg)
	}
	require.Fail(t, "unknown line in the bus section", "!%s", what)
	return nil
}

// Stateless checks that an event gives the same bytes whatever came before it, and
// that a codec leaves what it was given and what it returned alone.
func Stateless(t *testing.T, encode func(event.Event) [][]byte, events []event.Event, frames [][][]byte) {
	t.Helper()
	for i := len(events) - 1; i >= 0; i-- {
		before := bytes.Clone(events[i].Data)
		require.Equal(t, frames[i], encode(events[i]), "event %d", i+1)
		require.Equal(t, before, []byte(events[i].Data), "Encode changed event %d", i+1)
	}
}

// Result is what playing a transcript gave, for one of its sections.
type Result struct {
	Section string
	Rows    [][]byte
}

// Compare checks that the sections of a transcript are the results, or makes them so.
func Compare(t *testing.T, a *txtar.Archive, path string, results ...Result) {
	t.Helper()
	for _, r := range results {
		if *update {
			setSection(a, r.Section, r.Rows)
			continue
		}
		require.Equal(t, text(r.Rows), string(Section(a, r.Section)), "%s; run with -update if this is meant", r.Section)
	}
	if *update {
		require.NoError(t, os.WriteFile(path, txtar.Format(a), 0o600))
	}
}

// ShownIntent is an intent as transcripts show it.
type ShownIntent struct {
	ID      string             `json:"id"`
	Request string             `json:"request,omitempty"`
	Action  string             `json:"action"`
	Data    dialect.IntentData `json:"data"`
	Member  string             `json:"member,omitempty"`
}

// ShowIntent returns an intent as transcripts show it.
func ShowIntent(i dialect.Intent) ShownIntent {
	return ShownIntent{ID: i.ID, Request: i.Request, Action: i.Action(), Data: i.Data, Member: i.Member}
}

// legalID is what an id of a command has to be.
var legalID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// Sound checks that a command can be made of an intent.
func Sound(t testing.TB, i dialect.Intent) {
	t.Helper()
	if !legalID.MatchString(i.ID) {
		require.Regexp(t, legalID, i.ID)
	}
	require.NotEmpty(t, i.Action())
	_, err := json.Marshal(i.Data)
	require.NoError(t, err)
}

// Section returns the file of a transcript with the name, nil without one.
func Section(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func setSection(a *txtar.Archive, name string, rows [][]byte) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(text(rows))
			return
		}
	}
	if len(rows) > 0 {
		a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text(rows))})
	}
}

// Lines returns the lines of a section that are not empty.
func Lines(b []byte) [][]byte {
	var out [][]byte
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out = append(out, line)
		}
	}
	return out
}

func text(rows [][]byte) string {
	if len(rows) == 0 {
		return ""
	}
	return string(bytes.Join(rows, []byte("\n"))) + "\n"
}

// refusal returns the frame that tells the client of a fault of its frame.
func (c *checker) refusal(codec dialect.Codec, frame []byte, f *fault.Fault) []byte {
	if c.Refuse != nil {
		return c.Refuse(codec, frame, f)
	}
	return codec.Fail(f, Now)
}

var update = flag.Bool("update", false, "rewrite the golden transcripts")
