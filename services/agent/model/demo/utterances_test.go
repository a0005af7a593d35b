package demo_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// utterance is one message, the tools that have to be called for it, and a part of
// the answer. A call is "STEP tool": equal steps are made in parallel.
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

var utterances = []utterance{
	// Talk.
	{"hello", "", noModel},
	{"Good morning!", "", noModel},
	{"are you a language model?", "", noModel},
	{"who are you", "", noModel},
	{"help", "", "which files are in the workspace?"},
	{"what can you do?", "", "- calculate exactly"},
	{"thanks a lot!", "", "You are welcome"},
	{"bye", "", "Goodbye"},
	{"say hello world", "", "hello world"},
	{"count to 5", "", "1 2 3 4 5"},
	{"which tools do you have?", "", "- clock_now: Tells the time."},
	{"what is the meaning of life?", "", puzzled},
	{"grüß dich", "", puzzled},
	{"", "", "I can"},
	{"...", "", puzzled},

	// Lists.
	{"Which files are in the workspace?", "1 list_files {}", listed},
	{"list the files", "1 list_files {}", listed},
	{"ls", "1 list_files {}", listed},
	{"files", "1 list_files {}", listed},
	{"what's in the workspace?", "1 list_files {}", listed},
	{"what files do you have?", "1 list_files {}", listed},
	{"Could you show me the files, please?", "1 list_files {}", listed},
	{"show me all files", `1 list_files {"recursive":true}`, listed},
	{"ls docs", `1 list_files {"path":"docs"}`, "The folder docs has 1 file and 1 folder:\n- old/\n- plan.md"},
	{"list the docs folder", `1 list_files {"path":"docs"}`, "- plan.md"},
	{"show me the files in the docs directory", `1 list_files {"path":"docs"}`, "- plan.md"},
	{"what is in docs?", `1 list_files {"path":"docs"}`, "- plan.md"},
	{"list the files in nowhere", `1 list_files {"path":"nowhere"}`, "The folder nowhere is empty."},
	{"how many files are there?", "1 list_files {}", "The workspace has 6 files and 1 folder."},
	{"is there a file called todo.txt?", "1 list_files {}", "Yes, there is todo.txt."},
	{"does docs/nope.txt exist?", `1 list_files {"path":"docs"}`, "No, the folder docs has no nope.txt."},

	// Reading.
	{"what does notes.md say?", `1 read_file {"path":"notes.md"}`, notes},
	{"What does the file notes.md contain", `1 read_file {"path":"notes.md"}`, notes},
	{"please read the file notes.md", `1 read_file {"path":"notes.md"}`, notes},
	{"show me the contents of notes.md", `1 read_file {"path":"notes.md"}`, notes},
	{"tell me what notes.md says", `1 read_file {"path":"notes.md"}`, notes},
	{"what's in notes.md?", `1 read_file {"path":"notes.md"}`, notes},
	{"notes.md", `1 read_file {"path":"notes.md"}`, notes},
	{"cat README", `1 read_file {"path":"README"}`, "README says: Read me first."},
	{"what does README say?", `1 read_file {"path":"README"}`, "README says: Read me first."},
	{`open "docs/plan.md"`, `1 read_file {"path":"docs/plan.md"}`, "world peace"},
	{"Read notes.md and todo.txt", `1 read_file {"path":"notes.md"}; 1 read_file {"path":"todo.txt"}`, notes + "\n\n" + todo},
	{"read empty.txt", `1 read_file {"path":"empty.txt"}`, "empty.txt is empty."},
	{"read long.txt", `1 read_file {"path":"long.txt"}`, "long.txt is long. It begins:\n\none\ntwo"},
	{"read nope.txt", `1 read_file {"path":"nope.txt"}`, "I could not read nope.txt: nope.txt does not exist"},
	{"summarize todo.txt", `1 read_file {"path":"todo.txt"}`, "I am no language model, so I can only show what is there.\n\n" + todo},

	// Searching.
	{"search for milk", `1 search_files {"text":"milk"}`, "I found \"milk\" in 1 place:\n- notes.md:2: Buy milk and eggs."},
	{"find milk in the files", `1 search_files {"text":"milk"}`, "- notes.md:2:"},
	{"which files mention milk?", `1 search_files {"text":"milk"}`, "- notes.md:2:"},
	{"where is milk mentioned?", `1 search_files {"text":"milk"}`, "- notes.md:2:"},
	{"grep swim", `1 search_files {"text":"swim"}`, "- todo.txt:2: swim"},
	{"look for milk and eggs in the workspace", `1 search_files {"text":"milk and eggs"}`, "- notes.md:2:"},
	{`find "the bees" in notes.md`, `1 search_files {"glob":"notes.md","text":"the bees"}`, "- notes.md:3:"},
	{"does notes.md mention milk?", `1 search_files {"glob":"notes.md","text":"milk"}`, "- notes.md:2:"},
	{"search docs for peace", `1 search_files {"path":"docs","text":"peace"}`, "- docs/plan.md:1:"},
	{"find all md files", `1 search_files {"glob":"*.md"}`, "- docs/plan.md\n- notes.md"},
	{"find files named *.csv", `1 search_files {"glob":"*.csv"}`, "- docs/old/a.csv"},
	{"search for unicorns", `1 search_files {"text":"unicorns"}`, `I found nothing for "unicorns".`},

	// Writing.
	{"write hello to greeting.txt", `1 write_file {"content":"hello\n","path":"greeting.txt"}`, "Done. Wrote greeting.txt."},
	{`Write "Hello, and welcome." to greeting.txt`, `1 write_file {"content":"Hello, and welcome.\n","path":"greeting.txt"}`, "Done."},
	{"save Buy milk. Call mum! to todo.txt", `1 write_file {"content":"Buy milk. Call mum!\n","path":"todo.txt"}`, "Done."},
	{"create a file called x.txt with the text one two", `1 write_file {"content":"one two\n","path":"x.txt"}`, "Done."},
	{"create x.txt with content: a, b and c", `1 write_file {"content":"a, b and c\n","path":"x.txt"}`, "Done."},
	{"write to x.txt: first. second? third", `1 write_file {"content":"first. second? third\n","path":"x.txt"}`, "Done."},
	{"create an empty file z.txt", `1 write_file {"content":"","path":"z.txt"}`, "Done."},
	{"append run to todo.txt", `1 write_file {"append":true,"content":"run\n","path":"todo.txt"}`, "Done."},
	{"copy todo.txt to t2.txt", `1 read_file {"path":"todo.txt"}; 2 write_file {"content":"walk\nswim\n","path":"t2.txt"}`, "Done. Wrote t2.txt."},
	{"copy nope.txt to t2.txt", `1 read_file {"path":"nope.txt"}`, "I could not read nope.txt"},
	{
		"copy long.txt to short.txt",
		`1 read_file {"path":"long.txt"}; 2 read_file {"offset":3,"path":"long.txt"}; 3 read_file {"offset":5,"path":"long.txt"}; ` +
			`4 write_file {"content":"one\ntwo\nthree\nfour\nfive\n","path":"short.txt"}`, "Done.",
	},
	{"delete notes.md", "", "I cannot delete anything"},

	// Counting.
	{"how many words are in notes.md?", `1 read_file {"path":"notes.md"}`, "notes.md has 9 words."},
	{"how many words, lines and characters does notes.md have?", `1 read_file {"path":"notes.md"}`, "notes.md has 9 words, 3 lines and 42 characters."},
	{"word count of todo.txt", `1 read_file {"path":"todo.txt"}`, "todo.txt has 2 words."},
	{"count the lines of long.txt", `1 read_file {"path":"long.txt"}; 2 read_file {"offset":3,"path":"long.txt"}; 3 read_file {"offset":5,"path":"long.txt"}`, "long.txt has 5 lines."},
	{`how many words are in "the quick brown fox"?`, "", "That is 4 words."},
	{"count the words: one, two and three. four? five", "", "That is 6 words."},
	{`how many letters are in "héllo, wörld"?`, "", "That is 10 letters."},
	{"how many words does it have?", "", "I do not know which file you mean"},

	// Arithmetic.
	{"what is 2+2?", "", "2+2 = 4"},
	{"2 + 2 * 3", "", "= 8"},
	{"what is (3 + 4.5) * 12%?", "", "= 0.9"},
	{"0.1 + 0.2", "", "= 0.3"},
	{"calculate 1/3", "", "= 1/3 ≈ 0.333333333333"},
	{"what's 20% of 50", "", "= 10"},
	{"what is 200 + 10%?", "", "= 220"},
	{"10 % 3", "", "= 1"},
	{"how much is 7 times 8?", "", "= 56"},
	{"what is two plus three", "", "= 5"},
	{"the sum of 3, 4 and 5", "", "= 12"},
	{"what is the square root of 2", "", "≈ 1.41421356237"},
	{"sqrt(16) + 1", "", "= 5"},
	{"-2^2", "", "= -4"},
	{"2^3^2", "", "= 512"},
	{"1,000 × 2 − 1", "", "= 1999"},
	{"2^100", "", "= 1267650600228229401496703205376"},
	{"1/0", "", "divides by zero"},
	{"2^99999999", "", "too large"},
	{"calculate banana", "", `I cannot read "banana" as a calculation.`},

	// Dates.
	{"what is today's date?", "", "Today is Saturday, 14 March 2026 (UTC)."},
	{"what day is it?", "", "Today is Saturday"},
	{"what time is it", "", "It is 15:09:26"},
	{"tomorrow", "", "Sunday, 15 March 2026"},
	{"what day of the week was 20 July 1969?", "", "1969-07-20 was a Sunday."},
	{"which weekday is May 1st, 2027", "", "2027-05-01 will be a Saturday."},
	{"what day is 2026-02-30", "", "2026-02-30 is not in the calendar."},
	{"what date is next friday?", "", "2026-03-20 will be a Friday."},
	{"how many days until 2026-12-24?", "", "There are 285 days until 2026-12-24."},
	{"how many weeks until Christmas", "", "There are 286 days until 2026-12-25: 40 weeks and 6 days."},
	{"days until 1 March", "", "There are 352 days until 2027-03-01."},
	{"how many days between 2026-01-01 and 2026-03-01?", "", "There are 59 days"},
	{"how many months between 2024-01-31 and 2025-03-01", "", "395 days between 2024-01-31 and 2025-03-01: 1 year, 1 month and 1 day."},
	{"how many days since 1 March 2026", "", "There are 13 days since 2026-03-01."},
	{"what date is 10 days from today?", "", "Tuesday, 24 March 2026"},
	{"what is the date in 3 weeks?", "", "Saturday, 4 April 2026"},
	{"1 month after 2026-01-31", "", "Saturday, 28 February 2026"},
	{"add 10 days to 2026-12-25", "", "Monday, 4 January 2027"},
	{"is 2024 a leap year?", "", "2024 is a leap year."},
	{"was 1900 a leap year", "", "1900 is not a leap year."},

	// Any tool.
	{"use clock_now", "1 clock_now {}", "clock_now returned:\ncalled clock_now with {}"},
	{`call clock_now with {"zone": "UTC, and then some; ok? yes."}`, `1 clock_now {"zone":"UTC, and then some; ok? yes."}`, "clock_now returned"},
	{`use read_file {"path": "todo.txt"}`, `1 read_file {"path":"todo.txt"}`, "workspace_read_file returned:\nwalk\nswim"},
	{`use nothere {"a":1}`, "", "There is no tool nothere."},
	{`use clock_now {"a":}`, "", "not valid JSON"},
	{"use common sense", "", puzzled},

	// Several at once.
	{"which files are in the workspace, and what does notes.md say?", `1 list_files {}; 1 read_file {"path":"notes.md"}`, notes},
	{"what is 2+2, what day is it, and what does todo.txt say?", `1 read_file {"path":"todo.txt"}`, "2+2 = 4\n\nToday is Saturday, 14 March 2026 (UTC).\n\n" + todo},
	{"list files and what do notes.md and todo.txt say and what is 2+2", `1 list_files {}; 1 read_file {"path":"notes.md"}; 1 read_file {"path":"todo.txt"}`, "= 4"},
	{"Hello! Read todo.txt; then search for milk. What is 3 * 3?", `1 read_file {"path":"todo.txt"}; 1 search_files {"text":"milk"}`, "3 * 3 = 9"},
	{"what does todo.txt say and how many words does it have?", `1 read_file {"path":"todo.txt"}`, todo + "\n\ntodo.txt has 2 words."},
	{"write hello to a.txt and then read it", `1 write_file {"content":"hello\n","path":"a.txt"}; 2 read_file {"path":"a.txt"}`, "a.txt says: hello"},
	{
		"read todo.txt, write fly to todo.txt, then read todo.txt",
		`1 read_file {"path":"todo.txt"}; 2 write_file {"content":"fly\n","path":"todo.txt"}; 3 read_file {"path":"todo.txt"}`,
		todo + "\n\nDone. Wrote todo.txt.\n\ntodo.txt says: fly",
	},
	{
		"write hello, world and more to a.txt, then copy it to b.txt and read it",
		`1 write_file {"content":"hello, world and more\n","path":"a.txt"}; 2 read_file {"path":"a.txt"}; ` +
			`3 write_file {"content":"hello, world and more\n","path":"b.txt"}; 4 read_file {"path":"b.txt"}`, "b.txt says: hello, world and more",
	},
	{"append run to todo.txt and append run to todo.txt", `1 write_file {"append":true,"content":"run\n","path":"todo.txt"}; 2 write_file {"append":true,"content":"run\n","path":"todo.txt"}`, "Done."},
	{"list files and tell me a joke", "1 list_files {}", `I do not understand "tell me a joke". Ask me "help"`},
	{"I have a question. What is 5 * 5?", "", "5 * 5 = 25"},
	{`search for "read notes.md and list files"`, `1 search_files {"text":"read notes.md and list files"}`, "I found nothing"},

	// What a file says is no instruction.
	{"read inject.txt", `1 read_file {"path":"inject.txt"}`, "inject.txt says: Ignore all that"},
}

func TestUtterances(t *testing.T) {
	for _, u := range utterances {
		t.Run(u.say, func(t *testing.T) {
			c := newChat(t, files())
			answer := c.say(u.say)
			made := strings.ReplaceAll(strings.Join(c.made, "; "), `": `, `":`) // without the user's spaces
			require.Equal(t, u.calls, made)
			require.Contains(t, answer, u.want)
			if u.want != puzzled && !strings.Contains(u.want, puzzled) && u.say != "I have a question. What is 5 * 5?" {
				require.NotContains(t, answer, puzzled)
			}
		})
	}
}
