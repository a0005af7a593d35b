package site

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is a fenced block of a page, or an instruction to the test between two blocks.
type Block struct {
	Line int
	Lang string
	Name string // of the file that the block is
	Text string

	Run   string // how to run it: "background", "until TEXT", or empty
	Not   string // why it is not run
	Do    string // an instruction without a block: "type", "wait" or "browse"
	Value string // the text to type, or the page to browse
}

var (
	fence       = regexp.MustCompile("^( *)(`{3,})([^`]*)$")
	title       = regexp.MustCompile(`\[([^\]]+)\]\s*$`)
	instruction = regexp.MustCompile(`^ *<!-- (run|not run|type|wait|browse): (.*?) -->$`)
)

// Parse returns the blocks and instructions of a page, in order.
func Parse(page string) ([]Block, error) {
	var out []Block
	var next Block // from the comments before it
	lines := strings.Split(page, "\n")
	for n := 0; n < len(lines); n++ {
		line := lines[n]
		if m := instruction.FindStringSubmatch(line); m != nil {
			switch m[1] {
			case "run":
				next.Run = m[2]
			case "not run":
				next.Not = m[2]
			default:
				out = append(out, Block{Line: n + 1, Do: m[1], Value: m[2]})
			}
			continue
		}
		m := fence.FindStringSubmatch(line)
		if m == nil {
			if strings.TrimSpace(line) != "" && (next.Run != "" || next.Not != "") {
				return nil, fmt.Errorf("line %d: a comment about a block has no block after it", n+1)
			}
			continue
		}
		b := next
		next = Block{}
		b.Line = n + 1
		b.Lang, _, _ = strings.Cut(strings.TrimSpace(m[3]), " ")
		if t := title.FindStringSubmatch(m[3]); t != nil && strings.Contains(t[1], ".") {
			b.Name = t[1] // others are labels of a group
		}
		var text []string
		for n++; ; n++ {
			if n == len(lines) {
				return nil, fmt.Errorf("line %d: the block does not end", b.Line)
			}
			if strings.TrimSpace(lines[n]) == m[2] {
				break
			}
			text = append(text, strings.TrimPrefix(lines[n], m[1]))
		}
		b.Text = strings.Join(text, "\n") + "\n"
		out = append(out, b)
	}
	return out, nil
}

var colours = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// Missing returns the first line of want that does not occur in got after the lines before it, or "". An ellipsis stands for anything
// within a line; alone on a line it stands for any lines.
func Missing(want, got string) string {
	lines := strings.Split(colours.ReplaceAllString(got, ""), "\n")
	for w := range strings.SplitSeq(want, "\n") {
		w = strings.TrimRight(w, " ")
		if w == "" || strings.TrimSpace(w) == "…" {
			continue
		}
		parts := strings.Split(w, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		is := regexp.MustCompile("^" + strings.Join(parts, ".*") + `\s*$`)
		at := 0
		for at < len(lines) && !is.MatchString(lines[at]) {
			at++
		}
		if at == len(lines) {
			return w
		}
		lines = lines[at+1:]
	}
	return ""
}
