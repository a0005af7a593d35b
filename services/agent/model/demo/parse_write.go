package demo

import (
	"regexp"
	"strings"
)

const (
	toFile  = ` (?:to|in|into|as|under|at|inside) (?:the end of )?` + leadFile
	aFile   = `("[^"]+"|“[^”]+”|'[^']+'|` + "`[^`]+`" + `|\S+)`
	theText = `(?:(?:the|a|an) (?:text|words?|lines?|sentence|contents?|phrase|note)(?: that says)? ?:? ?)?`
	withIt  = `(?:the )?(?:(?:text|words?|lines?|sentence|contents?|phrase)\b ?:? ?)?`
)

var (
	writesTo = re(`(?:write|save|put|store|note down|note|record) ` + theText + `(.+)` + toFile + aFile)
	writes   = []*regexp.Regexp{ // file, text
		re(`(?:create|make|write|add|start|open) ` + leadFile + aFile + ` (?:with|containing|saying|that (?:says|contains|reads)|which (?:says|contains)|and (?:write|put)|:) ` + withIt + `(.+?)(?: (?:in|to|into) it)?`),
		re(`(?:write|save|put|store)(?: to| into| in) ` + leadFile + aFile + `(?: ?: ?| the text | the words? )(.+)`),
		re(`(?:create|make|write) ` + leadFile + `([^\s:]+) ?: ?(.+)`),
	}
	creates = re(`(?:create|make|touch)(?: an)?(?: empty)? ` + leadFile + aFile)
	appends = []*regexp.Regexp{
		re(`(?:append|add) ` + theText + `(.+)` + toFile + aFile),
	}
	appendsTo = re(`(?:append|add) to ` + leadFile + aFile + ` ?: ?(.+)`)
	copies    = re(`(?:copy|duplicate|back ?up) (?:the )?(?:contents? of |text of )?` + leadFile + aFile + ` (?:to|into|as|in) ` + leadFile + aFile)
	backups   = re(`(?:make |create |save )?(?:a )?(?:copy|duplicate) of ` + leadFile + aFile + ` (?:to|into|as|in|called|named) ` + leadFile + aFile)

	saidFile   = regexp.MustCompile(`(?i)\bfile (?:called |named )?$`)
	impossible = re(`(?:delete|remove|erase|rename|move|rm|mv|download|upload|e-?mail|send|browse|google|open the (?:web|internet)) (.+)`)
)

func parseCopy(c *clause) *task {
	m := match(c.raw, copies, backups)
	if m == nil {
		return nil
	}
	from, ok := c.name(m[0], true)
	to, ok2 := c.name(m[1], true)
	if !ok || !ok2 {
		return nil
	}
	c.file = to
	return copyTask(from, to)
}

func parseWrite(c *clause) *task {
	if m := match(c.raw, appendsTo); m != nil {
		return c.write(m[0], m[1], true)
	}
	if m := match(c.raw, appends...); m != nil {
		return c.write(m[1], m[0], true)
	}
	for _, r := range writes {
		if m := match(c.raw, r); m != nil {
			if k := c.write(m[0], m[1], false); k != nil {
				return k
			}
		}
	}
	if m := match(c.raw, writesTo); m != nil {
		return c.write(m[1], m[0], false)
	}
	if m := match(c.raw, creates); m != nil {
		return c.write(m[0], "", false)
	}
	return nil
}

// write returns the task of writing, if the file's name is one. What is written is
// exactly what stands between the quotes, or the words as they are.
func (c *clause) write(file, text string, add bool) *task {
	said := false // that it is a file, so that it need not look like one
	if i := strings.LastIndex(c.raw, file); i >= 0 {
		said = saidFile.MatchString(c.raw[:i])
	}
	n, ok := c.name(file, said)
	if !ok {
		return nil
	}
	c.file = n
	return writeTask(n, unquote(text), add)
}

func parseImpossible(c *clause) *task {
	m := match(c.raw, impossible)
	if m == nil || strings.HasPrefix(strings.ToLower(c.raw), "remove from") {
		return nil
	}
	verb, _, _ := strings.Cut(strings.ToLower(c.raw), " ")
	return say("I cannot " + verb + " anything: I can only list, read, search, write and copy files. " +
		"If there is another tool for it, say: use TOOL {\"argument\": \"value\"}")
}
