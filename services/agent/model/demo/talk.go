package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const who = "I am Waggle's built-in demo model, no language model: I recognise certain kinds of sentences and call real tools for them."

const can = `I can
- list files: "which files are in the workspace?"
- read them: "what does notes.md say?"
- search them: "search for milk in the files"
- write, add to and copy them: "write buy milk to todo.txt"
- count: "how many words does notes.md have?"
- calculate exactly: "what is (3 + 4.5) * 12%?"
- work with dates: "how many days until 2030-01-01?"
- work in a team: "ask Bob to read notes.md", "give Bob the task to count the words in notes.md"
- call any tool: "use TOOL {"argument": "value"}", and list them: "which tools do you have?"

Several requests in one message are fine. For real conversation, start Waggle with a language model.`

var (
	greets  = re(`(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)|moin|servus|hallo)(?: there| waggle| everyone| all| again| demo)*`)
	thanks  = re(`(?:many )?(?:thanks|thank you|thx|cheers)(?: a lot| very much| so much)*|great|nice|cool|perfect|awesome|ok|okay|fine|good|yes|no|please`)
	byes    = re(`(?:good)?bye(?: bye)?|see you(?: later)?|good night`)
	helps   = re(`help(?: me)?|\?+|what can you do|what can i (?:ask|do|say)(?: you)?(?: here)?|how (?:does this|do you) work|what do you (?:do|know)|usage|commands|examples?`)
	asksWho = re(`(?:who|what) (?:are|r) you(?: exactly)?|what(?:'s|’s| is) your name|are you (?:an? )?(?:real )?(?:ai|llm|language model|bot|robot|human|gpt|chatgpt|claude|model|person)|which model (?:are you|is this)|what model (?:are you|is this)|how are you(?: doing| today)?|introduce yourself`)
	echoes  = re(`(?:say|echo|repeat)(?: after me| this| the words?| the following)* ?:? ?(.+)`)
	countTo = re(`count (?:from 1 |from one )?(?:up )?to (\d{1,5})`)
	tools   = re(`(?:which|what|list|show)(?: are)?(?: me)?(?: all)?(?: of)?(?: the| your| available| my)* tools?(?: do you have| are there| can you (?:use|call)| are (?:available|offered)| have you got)?(?: available)?`)
	uses    = re(`(?:use|call|run|invoke|execute) (?:the )?(?:tool )?["'` + "`" + `]?([A-Za-z0-9_-]{1,64})["'` + "`" + `]?( tool)?,? ?(?:with (?:the )?(?:arguments?|args|input|parameters?)?:?)? ?(\{.*\})?`)
)

// maxCountTo is the longest count: some 60 KB of text, enough to watch a stream.
const maxCountTo = 10_000

func help() *task { return say(who + "\n\n" + can) }

// unknown is the task of a request that is not understood. Beside other tasks it
// gets a short answer.
func unknown(s string, alone bool) *task {
	const most = 200 // characters that are quoted back
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	answer := fmt.Sprintf("I do not understand %q.", s)
	if alone {
		return say(answer + " " + who + "\n\n" + can)
	}
	return say(answer + ` Ask me "help" to see what I do.`)
}

func parseTalk(c *clause) *task {
	s := c.raw
	switch {
	case greets.MatchString(s):
		k := say("Hello! " + who + ` Ask me "help" to see what for.`)
		k.small = true
		return k
	case byes.MatchString(s):
		return &task{small: true, do: say("Goodbye!").do}
	case thanks.MatchString(s):
		return &task{small: true, do: say(`You are welcome. Ask me "help" to see what I can do.`).do}
	case helps.MatchString(s):
		return help()
	case asksWho.MatchString(s):
		return say(who + ` Ask me "help" to see what for.`)
	case tools.MatchString(s):
		return &task{do: func(t *turn) (string, error) { return t.listTools(), nil }}
	}
	if m := match(s, countTo); m != nil {
		return countUp(m[0])
	}
	if m := match(s, echoes); m != nil {
		return say(unquote(m[0]))
	}
	return nil
}

func countUp(limit string) *task {
	n, err := strconv.Atoi(limit)
	if err != nil || n > maxCountTo {
		return say(fmt.Sprintf("I count to %d at most.", maxCountTo))
	}
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(i + 1))
	}
	return say(b.String())
}

func (t *turn) listTools() string {
	if len(t.req.Tools) == 0 {
		return "No tools are offered to me."
	}
	var all []string
	for _, s := range t.req.Tools {
		line := s.Name
		if d, _, _ := strings.Cut(strings.TrimSpace(s.Description), "\n"); d != "" {
			line += ": " + d
		}
		all = append(all, line)
	}
	return fmt.Sprintf("I have %s:\n%s", plural(len(all), "tool"), bullets(all))
}

// parseUse recognises a call of any tool by its name. Without arguments in JSON it
// has to be the name of an offered tool, since "use" begins other sentences too.
func parseUse(c *clause) *task {
	m := match(c.raw, uses)
	if m == nil {
		return nil
	}
	var found string
	for _, s := range c.turn.req.Tools {
		if s.Name == m[0] {
			found = s.Name
		}
	}
	if found == "" {
		if t, ok := c.turn.tool(m[0]); ok {
			found = t.name
		}
	}
	args := json.RawMessage(m[2])
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	switch {
	case found == "" && m[1] == "" && m[2] == "":
		return nil
	case found == "":
		return &task{do: func(t *turn) (string, error) {
			return fmt.Sprintf("There is no tool %s. %s", m[0], t.listTools()), nil
		}}
	case !json.Valid(args):
		return say(fmt.Sprintf("The arguments for %s are not valid JSON: %s", found, args))
	}
	return useTask(found, args)
}

func useTask(tool string, args json.RawMessage) *task {
	return &task{effect: true, do: func(t *turn) (string, error) {
		o, err := t.call(tool, args, true)
		switch {
		case err != nil:
			return "", err
		case o.failed:
			return fmt.Sprintf("%s failed: %s", tool, strings.TrimSpace(o.text)), nil
		case strings.TrimSpace(o.text) == "":
			return tool + " returned nothing.", nil
		}
		return fmt.Sprintf("%s returned:\n%s", tool, strings.TrimRight(o.text, "\n")), nil
	}}
}

const unit = `(words?|lines?|characters?|chars?|letters?|bytes?)`

var (
	countsOf = []*regexp.Regexp{
		re(`(?:how many|count(?: up)?(?: all)?(?: the)?(?: number of)?|(?:what(?:'s|’s| is) )?the number of|number of) ` +
			`((?:` + unit + `(?:\s*,\s*(?:and )?|\s+and\s+|\b))+)` +
			`(?: (?:are|is))?(?: there)?(?: (?:in|of|does|do|has|have|from|for))*(?: the)?(?: following| next| this| these)?(?: text| sentence| phrase| words?| line)? ?:? ?(.*?)(?: (?:have|has|contain|contains|hold|got))?(?: in it)?`),
	}
	countWord = re(`(?:what(?:'s|’s| is) )?(?:the |its |do a |a )?(word|line|character) ?counts?(?: (?:of|for|in))?(?: the)?(?: text| sentence)? ?:? ?(.*)`)
	unitWord  = regexp.MustCompile(`(?i)\b` + unit + `\b`)
)

func parseCount(c *clause) *task {
	var units, subject string
	if m := match(c.raw, countsOf...); m != nil {
		units, subject = m[0], m[2]
	} else if m := match(c.raw, countWord); m != nil {
		units, subject = m[0]+"s", m[1]
	} else {
		return nil
	}
	subject = strings.TrimSpace(subject)
	wanted := unitWord.FindAllString(strings.ToLower(units), -1)
	if subject == "" {
		subject = "it"
	}
	if !quoted(subject) || looksLikeFile(unquote(subject)) {
		if files := c.names(subject, false); files != nil {
			return countFiles(files, wanted)
		}
	}
	if pronoun.MatchString(subject) {
		return say("I do not know which file you mean. Name it, please.")
	}
	if !quoted(subject) && !strings.Contains(c.raw, ":") {
		return nil
	}
	return say("That is " + measure(unquote(subject), wanted) + ".")
}

func countFiles(files, wanted []string) *task {
	return &task{do: func(t *turn) (string, error) {
		var answers []string
		waiting := false
		for _, f := range files {
			c, err := t.read(f, true)
			waiting = waiting || err != nil
			switch {
			case c.problem != "":
				answers = append(answers, c.problem)
			case c.partial:
				answers = append(answers, fmt.Sprintf("%s is long. The part that I read has %s.", f, measure(c.content, wanted)))
			default:
				answers = append(answers, fmt.Sprintf("%s has %s.", f, measure(c.content, wanted)))
			}
		}
		if waiting {
			return "", errWait
		}
		return strings.Join(answers, "\n"), nil
	}}
}

// measure counts as wc does: words are separated by white space, and a line is
// what ends in a line end, or is the rest.
func measure(s string, wanted []string) string {
	var parts []string
	for _, w := range wanted {
		switch w[0] {
		case 'w':
			parts = append(parts, plural(len(strings.Fields(s)), "word"))
		case 'l':
			if strings.HasPrefix(w, "let") {
				parts = append(parts, plural(letters(s), "letter"))
				continue
			}
			n := strings.Count(s, "\n")
			if s != "" && !strings.HasSuffix(s, "\n") {
				n++
			}
			parts = append(parts, plural(n, "line"))
		case 'b':
			parts = append(parts, plural(len(s), "byte"))
		default:
			parts = append(parts, plural(utf8.RuneCountInString(s), "character"))
		}
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

func letters(s string) int {
	n := 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			n++
		}
	}
	return n
}
