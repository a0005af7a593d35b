package workspace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	// maxMatches bounds the lines of one answer.
	maxMatches = 200
	// maxShown is the length at which a matching line is cut.
	maxShown = 240
	// maxSearchedFile is the size above which a file is not searched.
	maxSearchedFile = 16 << 20
)

type searchArgs struct {
	Text          string `json:"text,omitempty" jsonschema:"plain text to find in the files"`
	Glob          string `json:"glob,omitempty" jsonschema:"pattern for names: *.md for names anywhere, docs/** with a slash for paths"`
	Path          string `json:"path,omitempty" jsonschema:"folder to search in, relative to the workspace; nothing means all of it"`
	CaseSensitive bool   `json:"case_sensitive,omitempty" jsonschema:"tell upper case from lower case"`
}

// finder is one search in progress.
type finder struct {
	root    *os.Root
	text    string
	glob    string
	fold    bool
	out     strings.Builder
	found   int
	scanned int64
	more    bool // a limit has excluded something
}

// search returns matching lines as path:line: text, or matching paths.
func (s *server) search(ctx context.Context, root *os.Root, in searchArgs) (string, error) {
	dir, err := local(in.Path)
	if err != nil {
		return "", err
	}
	if in.Text == "" && in.Glob == "" {
		return "", errors.New("give text to find, or a glob for names, or both")
	}
	if strings.ContainsAny(in.Text, "\n\r") {
		return "", errors.New("text is looked for line by line and may not have a line break in it")
	}
	if _, err := path.Match(in.Glob, ""); err != nil || len(in.Glob) > maxPath {
		return "", fmt.Errorf("%s is not a valid glob", clip(in.Glob))
	}
	f := &finder{root: root, text: in.Text, glob: in.Glob, fold: !in.CaseSensitive}
	if f.fold {
		f.text = strings.ToLower(f.text)
	}
	w := &walk{ctx: ctx, root: root, visit: func(p string, info fs.FileInfo) error { return f.visit(ctx, p, info) }}
	if err := w.run(dir); err != nil {
		return "", err
	}
	if f.more || w.partial {
		f.out.WriteString("[There may be more. Search in one folder, or for something rarer.]\n")
	} else if f.found == 0 {
		return "[Nothing found.]", nil
	}
	return f.out.String(), nil
}

func (f *finder) visit(ctx context.Context, p string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() || !f.named(filepath.ToSlash(p)) {
		return nil
	}
	if f.text == "" {
		return f.add(shown(p))
	}
	if info.Size() > maxSearchedFile || f.scanned+info.Size() > maxScan {
		f.more = true
		return nil
	}
	file, _, err := openFile(f.root, p)
	if err != nil {
		return nil // Gone or not readable: a search continues.
	}
	defer file.Close()
	return f.scan(p, io.LimitReader(withContext(ctx, file), maxSearchedFile))
}

// scan searches one file. It stops after the first block of a file that is not text.
func (f *finder) scan(p string, r io.Reader) error {
	in := bufio.NewReaderSize(r, block)
	if head, err := in.Peek(512); len(head) == 0 || (err != nil && !errors.Is(err, io.EOF)) || strings.ContainsRune(string(head), 0) {
		return nil // Not readable: a search continues.
	}
	for line := 1; ; {
		// The buffer splits longer lines into pieces of its size.
		part, err := in.ReadSlice('\n')
		f.scanned += int64(len(part))
		if f.matches(string(part)) {
			if err := f.add(fmt.Sprintf("%s:%d: %s", shown(p), line, excerpt(string(part)))); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil //nolint:nilerr // The end, or a file that became unreadable: the search continues.
		default:
			line++
		}
	}
}

func (f *finder) matches(line string) bool {
	if f.fold {
		line = strings.ToLower(line)
	}
	return strings.Contains(line, f.text)
}

func (f *finder) add(line string) error {
	if f.found == maxMatches || f.out.Len() > maxRead {
		f.more = true
		return errStop
	}
	f.found++
	f.out.WriteString(line)
	f.out.WriteByte('\n')
	return nil
}

// named reports whether the path fits the glob: its last name if the glob has no slash, otherwise the whole path, in which
// ** stands for any number of names.
func (f *finder) named(p string) bool {
	if f.glob == "" {
		return true
	}
	if !strings.Contains(f.glob, "/") {
		return fits([]string{f.glob}, []string{path.Base(p)})
	}
	return fits(strings.Split(f.glob, "/"), strings.Split(p, "/"))
}

// fits keeps the set of positions in names at which the glob so far can end, so that the product of the lengths bounds its
// work for any glob.
func fits(glob, names []string) bool {
	at := make([]bool, len(names)+1)
	at[0] = true
	for _, g := range glob {
		next := make([]bool, len(names)+1)
		next[0] = g == "**" && at[0]
		for i, name := range names {
			if g == "**" {
				next[i+1] = at[i+1] || next[i]
				continue
			}
			ok, err := path.Match(g, name)
			next[i+1] = at[i] && ok && err == nil
		}
		at = next
	}
	return at[len(names)]
}

// excerpt returns a line without its end, valid and cut.
func excerpt(line string) string {
	line = strings.ToValidUTF8(strings.TrimRight(line, "\r\n"), "\uFFFD")
	if len(line) > maxShown {
		return strings.ToValidUTF8(line[:maxShown], "") + "..."
	}
	return line
}
