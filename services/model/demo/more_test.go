package demo_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/modeltest"
)

func TestConversation(t *testing.T) {
	c := newChat(t, files())
	require.Contains(t, c.say("what does todo.txt say?"), "swim")
	require.Equal(t, "todo.txt has 2 words.", c.say("and how many words does it have?"))
	require.Contains(t, c.say("append run to it"), "Done.")
	require.Contains(t, c.say("read it"), "walk\nswim\nrun")
	require.Equal(t, "2+2 = 4", c.say("what is 2+2"))
	require.Contains(t, c.say("write done to docs/new.txt"), "Done.")
	require.Contains(t, c.say("what does it say?"), "docs/new.txt says: done")
}

// The model asks again for each message and does not repeat an earlier failure from memory.
func TestEachMessageAsksAnew(t *testing.T) {
	c := newChat(t, files())
	require.Contains(t, c.say("read new.txt"), "does not exist")
	c.ws["new.txt"] = "here\n"
	require.Contains(t, c.say("read new.txt"), "here")
}

func TestWithoutTools(t *testing.T) {
	c := newChat(t, files())
	c.req.Tools = nil
	for say, want := range map[string]string{
		"list the files":              "I cannot list the files: no tool for it is offered to me.",
		"read a.txt":                  "I cannot read a.txt: no tool for it is offered to me.",
		"write x to a.txt":            "I cannot write a.txt: no tool for it is offered to me.",
		"search for x":                `I cannot search for "x": no tool for it is offered to me.`,
		"how many words are in a.txt": "I cannot read a.txt: no tool for it is offered to me.",
		"which tools do you have":     "No tools are offered to me.",
	} {
		require.Equal(t, want, c.say(say))
		require.Empty(t, c.made)
	}
	require.Equal(t, "2+2 = 4", c.say("2+2"), "the rest works")
}

// The model finds tools of other servers by the ends of their names, and calls them with their schemas' property names.
func TestOtherPeoplesTools(t *testing.T) {
	req := modeltest.Ask("read a.txt and search for x and write y to b.txt")
	req.Tools = []model.ToolSpec{
		{Name: "unread_files", InputSchema: json.RawMessage(`{}`)},
		{Name: "disk-read_file", InputSchema: json.RawMessage(`{"properties":{"filename":{}}}`)},
		{Name: "search_files", InputSchema: json.RawMessage(`{"properties":{"pattern":{},"dir":{}}}`)},
		{Name: "disk_write_file", InputSchema: json.RawMessage(`{"properties":{"file_path":{},"text":{}}}`)},
	}
	r, err := modeltest.Generate(t.Context(), t, demo.New(), req)
	require.NoError(t, err)
	require.Equal(t, []string{`disk-read_file {"filename":"a.txt"}`, `search_files {"pattern":"x"}`}, called(r))
	r, err = modeltest.Generate(t.Context(), t, demo.New(), modeltest.Answer(req, r, func(event.ToolCall) (string, bool) { return "ok", false }))
	require.NoError(t, err)
	require.Equal(t, []string{`disk_write_file {"file_path":"b.txt","text":"y\n"}`}, called(r))
}

// Of several file servers the one that has the file answers, the workspace first, in any order of the offer.
func TestTheServerThatHasTheFileIsAsked(t *testing.T) {
	has := map[string]string{"workspace_read_file": "notes.md", "files_read_file": "/srv/other.txt"}
	answer := func(c event.ToolCall) (string, bool) {
		if strings.Contains(string(c.Arguments), has[c.Name]) {
			return "Found by " + c.Name, false
		}
		return "No such file here.", true
	}
	for file, want := range map[string][]string{
		"notes.md":       {"workspace_read_file"},
		"/srv/other.txt": {"workspace_read_file", "files_read_file"},
		"/srv/none.txt":  {"workspace_read_file", "files_read_file"},
	} {
		req := modeltest.Ask("read " + file)
		req.Tools = nil
		for _, name := range []string{"files_read_file", "workspace_read_file"} {
			req.Tools = append(req.Tools, model.ToolSpec{Name: name, InputSchema: json.RawMessage(`{"properties":{"path":{}}}`)})
		}
		var asked []string
		for {
			r, err := modeltest.Generate(t.Context(), t, demo.New(), req)
			require.NoError(t, err)
			if len(r.ToolCalls) == 0 {
				if file == "/srv/none.txt" {
					require.Contains(t, r.Text, "No such file here.")
				} else {
					require.Contains(t, r.Text, "Found by "+want[len(want)-1])
				}
				break
			}
			for _, c := range r.ToolCalls {
				asked = append(asked, c.Name)
			}
			req = modeltest.Answer(req, r, answer)
		}
		require.Equal(t, want, asked, file)
	}
}

func called(r model.Reply) []string {
	var all []string
	for _, c := range r.ToolCalls {
		all = append(all, c.Name+" "+string(c.Arguments))
	}
	return all
}

// A tool that cannot append would lose the file's content.
func TestAppendsOnlyWhereTheToolCan(t *testing.T) {
	c := newChat(t, files())
	for i := range c.req.Tools {
		c.req.Tools[i].InputSchema = json.RawMessage(strings.ReplaceAll(string(c.req.Tools[i].InputSchema), `"append"`, `"other"`))
	}
	require.Equal(t, "I cannot write todo.txt: no tool for it is offered to me.", c.say("append run to todo.txt"))
	require.Empty(t, c.made)
}

func TestMaxTokensCutsTheAnswer(t *testing.T) {
	req := modeltest.Ask("count to 100")
	req.MaxTokens = 3
	r, err := modeltest.Generate(t.Context(), t, demo.New(), req)
	require.NoError(t, err)
	require.Equal(t, "1 2 3 ", r.Text)
	require.Equal(t, model.StopLength, r.StopReason)
	require.False(t, r.Usage.Known)
}

func TestNoUserMessage(t *testing.T) {
	req := modeltest.Ask("")
	req.Messages = nil
	r, err := modeltest.Generate(t.Context(), t, demo.New(), req)
	require.NoError(t, err)
	require.Contains(t, r.Text, "I can")
}

// The worst messages for the splitter must not keep a worker busy. Each takes less than a second; without the bounds they
// take hours.
func TestLongMessages(t *testing.T) {
	for name, s := range map[string]string{
		"sentences that are no requests": strings.Repeat("hello there. ", 2_000), "unfinished writing": strings.Repeat("write a. ", 3_000),
		"clauses": strings.Repeat("list the files, ", 120), "requests": strings.Repeat("list the files. ", 3_000), "commas": strings.Repeat(strings.Repeat("say a, ", 70)+"b. ", 20), "marks": strings.Repeat("? ", 32_000), "quotes": strings.Repeat(" 'a", 8_000),
		"politeness": strings.Repeat(" please", 3_000), "parentheses": strings.Repeat("(", 60_000), "nested": strings.Repeat("(", 100) + "1+1" + strings.Repeat(")", 90), "fractions": strings.Repeat("1/7919+", 28) + "1",
	} {
		c := newChat(t, files())
		require.NotEmpty(t, c.say(s), name)
		require.LessOrEqual(t, len(c.made), 16, name)
	}
}

// FuzzMessage checks that any message ends in an answer, the same one every time, and that the model writes only for a
// message with a verb of writing.
func FuzzMessage(f *testing.F) {
	for _, u := range append(shown, others...) {
		f.Add(u.say)
	}
	for _, s := range []string{
		"\x00", "\"", "'''", "{{{", "}}}", "((((", strings.Repeat("(", 500), strings.Repeat("read a.txt and ", 60), strings.Repeat("?!", 400),
		"write \"", "a.b", "% % %", "what does \" say", "days until until", "x x x", "1 x", "Write 0 to \xa6", "...and?", "copy it to it", "use {}", "\u202e", "١ + ٢",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 4_000 {
			return
		}
		a, b := newChat(t, files()), newChat(t, files())
		answer := a.say(s)
		require.NotEmpty(t, answer)
		require.Equal(t, answer, b.say(s))
		require.Equal(t, a.made, b.made)
		require.True(t, utf8.ValidString(answer), "%q", answer)
	})
}
