package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	// maxVisited bounds the entries that one call visits, about a second's work.
	maxVisited = 20_000
	// maxDepth bounds nesting; real trees stay below 20.
	maxDepth = 40
	// namesAtOnce is the number of a folder's names that one step fetches.
	namesAtOnce = 1024
)

// errStop ends a walk early; run does not report it.
var errStop = errors.New("stop")

// walk visits the entries below a folder in the order of names, folders before their contents. It never follows a symbolic
// link.
type walk struct {
	ctx     context.Context //nolint:containedctx // The walk lives as long as one call.
	root    *os.Root
	visited int
	partial bool // the limit of entries or depth has excluded something
	visit   func(path string, info fs.FileInfo) error
	flat    bool // skip sub-folders
}

// run visits all entries below dir. It returns nil after errStop.
func (w *walk) run(dir string) error {
	err := w.folder(dir, 0)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (w *walk) folder(dir string, depth int) error {
	names, err := w.names(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if isTemp(name) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := w.root.Lstat(path)
		if err != nil {
			continue // Gone, or not readable.
		}
		if err := w.visit(path, info); err != nil {
			return err
		}
		if !info.IsDir() || w.flat {
			continue
		}
		if depth >= maxDepth {
			w.partial = true
			continue
		}
		if err := w.folder(path, depth+1); err != nil {
			if errors.Is(err, errStop) || w.ctx.Err() != nil {
				return err
			}
		}
	}
	return nil
}

// names returns the sorted names in a folder, up to the limit of entries.
func (w *walk) names(dir string) ([]string, error) {
	f, err := w.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, explain(dir, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		return nil, errors.Join(explain(dir, err), fmt.Errorf("%s is not a folder", clip(dir)))
	}
	var all []string
	for {
		if w.visited >= maxVisited {
			w.partial = true
			break
		}
		some, err := f.Readdirnames(min(namesAtOnce, maxVisited-w.visited))
		w.visited += len(some)
		all = append(all, some...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, explain(dir, err)
		}
	}
	slices.Sort(all)
	return all, nil
}

// shown returns a path for display: slashes, valid UTF-8, one line.
func shown(path string) string {
	path = strings.ToValidUTF8(filepath.ToSlash(path), "\uFFFD")
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q", path)
	}
	return path
}
