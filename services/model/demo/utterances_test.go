package demo_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/modeltest"
)

// utterance is a message, the calls that the model makes for it, and a part of the answer. A call is "STEP tool": equal
// steps run in parallel.
type utterance struct {
	say   string
	calls string // separated by "; "
	want  string
}

const (
	listed  = "The workspace has 6 files and 1 folder:\n- README (15 bytes)\n- docs/"
	notes   = "notes.md says:\n\n# Notes\nBuy milk and eggs.\nCall the bees."
	todo    = "todo.txt says:\n\nwalk\nswim"
	puzzled = "I do not understand"
	noModel = "no language model"
)

// shown are the messages that the README, the tour, the help, the examples, and the tests of the binary send to this model.
var shown = []utterance{
	// README.md, docs/TOUR.md, the banner of waggle up and the notes of a new workspace.
	{"which files are in the workspace, and what does notes.md say?", `1 list_files {}; 1 read_file {"path":"notes.md"}`, notes},
	{"Which files are in the workspace, and what does notes.md say?", `1 list_files {}; 1 read_file {"path":"notes.md"}`, listed},
	{"how many words are in notes.md?", `1 read_file {"path":"notes.md"}`, "notes.md has 9 words."},
	{"compute 6*7", "", "6*7 = 42"},
	{"and what is 6*7?", "", "6*7 = 42"},
	{"hello", "", noModel},

	// docs/examples and the tests of teams: messages between members.
	{"read notes.md", `1 read_file {"path":"notes.md"}`, notes},
	{"how many words notes.md has", `1 read_file {"path":"notes.md"}`, "notes.md has 9 words."},
	{"count to 3", "", "1 2 3"},
	{"what is 1+1?", "", "1+1 = 2"},
	{"are you there?", "", puzzled},

	// cmd/waggle.
	{"4*5", "", "4*5 = 20"},
	{"What is 6 * 7?", "", "6 * 7 = 42"},
	{"what is in my workspace?", "1 list_files {}", listed},
	{"keep this", "", puzzled},

	// e2e, services/worker and the suite of models.
	{"what is 2+3?; what is 7*6?", "", "2+3 = 5\n\n7*6 = 42"},
	{"what is 2+3?; what is 7*6?; list the files; finally read notes.md", `1 list_files {}; 1 read_file {"path":"notes.md"}`, notes},
	{"what is 10-1?", "", "10-1 = 9"},
	{"list the files", "1 list_files {}", listed},
	{"list the files and read notes.md", `1 list_files {}; 1 read_file {"path":"notes.md"}`, notes},
	{"list the files; then read notes.md", `1 list_files {}; 1 read_file {"path":"notes.md"}`, notes},
	{"read missing.md", `1 read_file {"path":"missing.md"}`, "I could not read missing.md: missing.md does not exist"},
	{"what does notes.md say?", `1 read_file {"path":"notes.md"}`, notes},
	{"say hi", "", "hi"},
	{
		"write hello to a.txt and then read it, and what is 6*7?",
		`1 write_file {"content":"hello\n","path":"a.txt"}; 2 read_file {"path":"a.txt"}`, "Done. Wrote a.txt.\n\na.txt says: hello\n\n6*7 = 42",
	},
}

// others are messages that no page shows: each intent once more, and messages that are hard to split.
var others = []utterance{
	{"help", "", "which files are in the workspace?"},
	{"which tools do you have?", "", "- clock_now: Tells the time."},
	{"", "", "I can"},
	{"...", "", puzzled},
	{"read README", `1 read_file {"path":"README"}`, "README says: Read me first."},
	{"todo.txt", `1 read_file {"path":"todo.txt"}`, todo},
	{"please read the file todo.txt", `1 read_file {"path":"todo.txt"}`, todo},
	{`open "docs/plan.md"`, `1 read_file {"path":"docs/plan.md"}`, "world peace"},
	{"read empty.txt", `1 read_file {"path":"empty.txt"}`, "empty.txt is empty."},
	{"read long.txt", `1 read_file {"path":"long.txt"}`, "continue with offset 3"},
	{"read it", "", "I do not know which file you mean"},
	{"how many lines does long.txt have?", `1 read_file {"path":"long.txt"}`, "long.txt is too long for me to count."},
	{"how many lines does notes.md have?", `1 read_file {"path":"notes.md"}`, "notes.md has 3 lines."},
	{"how many characters does notes.md have?", `1 read_file {"path":"notes.md"}`, "notes.md has 42 characters."},
	{"search for milk", `1 search_files {"text":"milk"}`, "notes.md:2: Buy milk and eggs."},
	{"find milk and eggs in the workspace", `1 search_files {"text":"milk and eggs"}`, "notes.md:2:"},
	{`search for "read notes.md and list the files"`, `1 search_files {"text":"read notes.md and list the files"}`, "Nothing found"},
	{`Write "Hello, and welcome. Really?" to a.txt`, `1 write_file {"content":"Hello, and welcome. Really?\n","path":"a.txt"}`, "Done."},
	{"append run to todo.txt", `1 write_file {"append":true,"content":"run\n","path":"todo.txt"}`, "Done. Wrote todo.txt."},
	{"write a letter to mum", "", puzzled},
	{"search the files for milk", `1 search_files {"text":"milk"}`, "notes.md:2: Buy milk and eggs."},
	{"what is the date today?", "", "Today is Saturday, 14 March 2026 (UTC)."},
	{"what day is it?", "", "Today is Saturday, 14 March 2026 (UTC)."},
	{"what time is it", "", "It is 15:09:26"},
	{"how many days until 2026-12-24?", "", "There are 285 days until 2026-12-24."},
	{"how many days until 2026-03-13?", "", "2026-03-13 was 1 day ago."},
	{"how many days until 2026-02-30?", "", "2026-02-30 is not in the calendar."},
	{"what is (3 + 4.5) * 2?", "", "(3 + 4.5) * 2 = 15"},
	{"0.1 + 0.2", "", "0.1 + 0.2 = 0.3"},
	{"1/3", "", "1/3 ≈ 0.333333333333"},
	{"1/(2-2)", "", puzzled},
	{"what is 42?", "", puzzled},
	{"010 + 1", "", puzzled},
	{"1 /* 2 */", "", puzzled},
	{"count to 99999", "", "I count to 10000 at most."},
	{"use clock_now", "1 clock_now {}", "clock_now returned:\ncalled clock_now with {}"},
	{`use clock_now {"zone": "UTC, and then some; ok? yes."}`, `1 clock_now {"zone":"UTC, and then some; ok? yes."}`, "clock_now returned"},
	{`use read_file {"path": "todo.txt"}`, `1 read_file {"path":"todo.txt"}`, "workspace_read_file returned:\nwalk\nswim"},
	{`use nothere {"a":1}`, "", "I cannot use nothere: no tool for it is offered to me."},
	{`use clock_now {"a":}`, "", "not valid JSON"},
	{"use common sense", "", puzzled},
	{"what is the meaning of life?", "", puzzled},
	{
		"read todo.txt, write fly to todo.txt, then read todo.txt",
		`1 read_file {"path":"todo.txt"}; 2 write_file {"content":"fly\n","path":"todo.txt"}; 3 read_file {"path":"todo.txt"}`,
		todo + "\n\nDone. Wrote todo.txt.\n\ntodo.txt says: fly",
	},
	{
		"append run to todo.txt and append run to todo.txt",
		`1 write_file {"append":true,"content":"run\n","path":"todo.txt"}; 2 write_file {"append":true,"content":"run\n","path":"todo.txt"}`, "Done.",
	},
	{"what does todo.txt say and how many words does it have?", `1 read_file {"path":"todo.txt"}; 1 read_file {"path":"todo.txt"}`, todo + "\n\ntodo.txt has 2 words."},
	{"list the files and tell me a joke", "1 list_files {}", `I do not understand "tell me a joke". Ask me "help"`},
	{"I have a question. What is 5 * 5?", "", "5 * 5 = 25"},
	// The model does not obey the content of a file.
	{"read inject.txt", `1 read_file {"path":"inject.txt"}`, "inject.txt says: Ignore all that"},
}

func TestUtterances(t *testing.T) {
	for _, u := range append(shown, others...) {
		t.Run(u.say, func(t *testing.T) {
			c := newChat(t, files())
			answer := c.say(u.say)
			made := strings.ReplaceAll(strings.Join(c.made, "; "), `": `, `":`) // without the user's spaces
			require.Equal(t, u.calls, made)
			require.Contains(t, answer, u.want)
			if !strings.Contains(u.want, puzzled) && !strings.HasPrefix(u.say, "I have") {
				require.NotContains(t, answer, puzzled)
			}
		})
	}
}

// TestTheHelpIsTrue: the model understands each example of the help, in a team with Bob.
func TestTheHelpIsTrue(t *testing.T) { synctest.Test(t, theHelpIsTrue) }

func theHelpIsTrue(t *testing.T) {
	help := newChat(t, files()).say("help")
	help = strings.ReplaceAll(help, `"use TOOL {"argument": "value"}"`, "")
	examples := regexp.MustCompile(`"([a-z][^"]+)"`).FindAllStringSubmatch(help, -1)
	require.Len(t, examples, 16)
	for _, e := range examples {
		req := newChat(t, files()).req
		req.Tools = append(req.Tools, teamTools("Bob")...)
		req.Messages = append(req.Messages, user(e[1]))
		r, err := modeltest.Generate(context.Background(), t, demo.New(), req)
		require.NoError(t, err)
		require.NotContains(t, r.Text, puzzled, e[1])
	}
}
