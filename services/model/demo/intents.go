package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	about = "I am Waggle's built-in demo model, no language model: I recognise certain kinds of sentences and call real tools for them."

	// help names every intent; tests run its quoted examples.
	help = about + `

I can
- list files: "which files are in the workspace?"
- read them: "what does notes.md say?"
- search them: "search for milk"
- write and add to them: "write buy milk to todo.txt", "append call mum to todo.txt"
- count: "how many words does notes.md have?", "count to 10"
- calculate exactly: "what is (3 + 4.5) * 2?"
- tell the date and the time: "what day is it?", "what time is it?", "how many days until 2030-01-01?"
- repeat: "say hello"
- tell a story, as slowly as language models do: "how do bees tell each other where the flowers are?"
- work in a team: "ask Bob to read notes.md", "give Bob the task to count to 3"
- call any tool: "use TOOL {"argument": "value"}", and list them: "which tools do you have?"

Several requests in one message are fine. For real conversation, start Waggle with a language model.`

	maxCountTo = 10_000 // some 60 KB of text, enough to watch a stream
	secondsDay = 24 * 60 * 60
)

// intent is one kind of request. The pattern matches a whole clause; act receives its groups and returns nil if the clause
// means something else.
type intent struct {
	pattern *regexp.Regexp
	act     func(c *clause, m []string) *action
}

// file is the group of a pattern that names a file; exact names look like files.
const (
	file  = `(?:the file )?("[^"]+"|\S+)`
	exact = `(?:the file )?("[^"]+"|it|\S+\.[a-z][a-z0-9]*)`
)

// intents are tried in order; the first that returns an action counts.
var intents = []intent{
	on(`ask (?:the )?(.+)`, askColleague),
	on(`give (?:the )?(.+)`, giveColleague),
	on(`use (\S+)(?: (\{.*\}))?`, useTool),
	on(`which tools do you have`, listTools),
	on(`(?:hi|hello|hey)(?: there)?`, func(*clause, []string) *action { return say("Hello! " + about + ` Ask me "help" to see what for.`) }),
	on(`help|what can you do`, func(*clause, []string) *action { return say(help) }),
	on(`(?:tell (?:me )?)?(?:how (?:do )?bees tell each other where the flowers are|(?:a|the) story)`, func(*clause, []string) *action { return say(story) }),
	on(`say (.+)`, func(_ *clause, m []string) *action { return say(unquote(m[0])) }),
	on(`count to (\d{1,5})`, func(_ *clause, m []string) *action { return countUp(m[0]) }),
	on(`how many (word|line|character)s (?:are in |does |do )?`+file+`(?: has| have)?`, countIn),
	on(`(write|save|append|add) (.+) to `+exact, write),
	on(`what (?:day|date) is it|what is (?:the|today's) date(?: today)?`, func(c *clause, _ []string) *action {
		return say("Today is " + c.talk.now.Format("Monday, 2 January 2006") + " (UTC).")
	}),
	on(`what time is it`, func(c *clause, _ []string) *action {
		return say("It is " + c.talk.now.Format(time.TimeOnly) + " (UTC).")
	}),
	on(`how many days (?:are (?:there|left) )?until (\d{4}-\d\d-\d\d)`, daysUntil),
	on(`(?:list|show) (?:the )?files|(?:(?:which|what) files are|what is) in (?:the|my) workspace`, listFiles),
	on(`(?:read|show|open) `+file, readFile),
	on(`what does `+file+` say`, readFile),
	on(exact, readFile),
	on(`(?:search (?:(?:the|my) (?:files|workspace) )?for|find) (.+?)(?: in the (?:files|workspace))?`, search),
	on(`(?:what is |compute |calculate )?(.+)`, calculate),
}

// on returns the intent of a pattern: case does not matter, and a dot matches everything.
func on(pattern string, act func(*clause, []string) *action) intent {
	return intent{regexp.MustCompile(`(?is)^(?:` + pattern + `)$`), act}
}

// parse returns the action of a clause, or nil if no intent matches.
func (c *clause) parse() *action {
	for _, i := range intents {
		if m := i.pattern.FindStringSubmatch(c.text); m != nil {
			if a := i.act(c, m[1:]); a != nil {
				return a
			}
		}
	}
	return nil
}

// unknown is the action for a request that no intent matches.
func unknown(text, hint string) *action {
	return say(fmt.Sprintf("I do not understand %q. ", shorten(text)) + hint)
}

func countUp(limit string) *action {
	n, err := strconv.Atoi(limit)
	if err != nil || n > maxCountTo {
		return say(fmt.Sprintf("I count to %d at most.", maxCountTo))
	}
	numbers := make([]string, n)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i + 1)
	}
	return say(strings.Join(numbers, " "))
}

func daysUntil(c *clause, m []string) *action {
	day, err := time.Parse(time.DateOnly, m[0])
	if err != nil {
		return say(m[0] + " is not in the calendar.")
	}
	n := int(day.Unix()/secondsDay - c.talk.now.Unix()/secondsDay)
	if n < 0 {
		return say(fmt.Sprintf("%s was %s ago.", m[0], plural(-n, "day")))
	}
	return say(fmt.Sprintf("There are %s until %s.", plural(n, "day"), m[0]))
}

func listTools(c *clause, _ []string) *action {
	if len(c.talk.req.Tools) == 0 {
		return say("No tools are offered to me.")
	}
	var all []string
	for _, s := range c.talk.req.Tools {
		about, _, _ := strings.Cut(strings.TrimSpace(s.Description), "\n")
		all = append(all, "- "+strings.TrimSuffix(s.Name+": "+about, ": "))
	}
	return say(fmt.Sprintf("I have %s:\n%s", plural(len(all), "tool"), strings.Join(all, "\n")))
}

// useTool calls any tool by its name. Without arguments the name must be that of an offered tool, since "use" begins other
// sentences, too.
func useTool(c *clause, m []string) *action {
	tools, args := c.talk.tools(m[0]), json.RawMessage(m[1])
	switch {
	case len(tools) == 0 && len(args) == 0:
		return nil
	case len(args) == 0:
		args = json.RawMessage("{}")
	case !json.Valid(args):
		return say(fmt.Sprintf("The arguments for %s are not valid JSON: %s", m[0], args))
	}
	return use("use "+m[0], true, func(*talk) []offer {
		if len(tools) == 0 {
			return nil
		}
		return []offer{{tools[0].name, args}}
	}, func(result string) string { return tools[0].name + " returned:\n" + result })
}
