package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file or a folder of an archive.
type entry struct {
	name string // slash-separated; that of a folder ends with a slash
	mode fs.FileMode
	body []byte
}

// archiveCmd writes files into a .tar.gz.
func archiveCmd(_ context.Context, c *command, args []string) error {
	if err := c.Parse(args); err != nil {
		return err
	}
	at, err := c.time()
	if err != nil {
		return err
	}
	var entries []entry
	for _, arg := range c.Args()[1:] {
		name, file, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=FILE", arg)
		}
		found, err := tree(file, name)
		if err != nil {
			return err
		}
		entries = append(entries, found...)
	}
	content, err := gzipped(entries, at)
	if err != nil {
		return err
	}
	return publish(c.Arg(0), content)
}

// tree returns a file, or a folder with all that is in it, under the given name. Permissions do not depend on the umask of
// the checkout.
func tree(root, name string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		e := entry{name: path.Join(name, filepath.ToSlash(rel)), mode: 0o644}
		switch {
		case d.IsDir():
			e.name, e.mode = e.name+"/", 0o755
			if info.Mode()&fs.ModeSticky != 0 {
				e.mode = 0o777 | fs.ModeSticky
			}
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a file", file)
		default:
			if info.Mode()&0o111 != 0 {
				e.mode = 0o755
			}
			if e.body, err = os.ReadFile(file); err != nil { //nolint:gosec // nobody else writes there meanwhile
				return err
			}
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", root, err)
	}
	return entries, nil
}

// tarred writes an archive without owners, in the order of names.
func tarred(w io.Writer, entries []entry, at time.Time) error {
	t := tar.NewWriter(w)
	for _, e := range sorted(entries) {
		h, err := tar.FileInfoHeader(info{e, at}, "")
		if err != nil {
			return fmt.Errorf("describe %s: %w", e.name, err)
		}
		h.Name, h.Format = e.name, tar.FormatUSTAR
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("write %s: %w", e.name, err)
		}
		if _, err := t.Write(e.body); err != nil {
			return fmt.Errorf("write %s: %w", e.name, err)
		}
	}
	return t.Close()
}

// gzipped returns a .tar.gz.
func gzipped(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	err = errors.Join(tarred(z, entries, at), z.Close())
	return b.Bytes(), err
}

func sorted(entries []entry) []entry {
	return slices.SortedStableFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.name, b.name) })
}

// info describes an entry to the writer of archives.
type info struct {
	entry
	at time.Time
}

// Name implements fs.FileInfo.
func (i info) Name() string { return path.Base(i.name) }

// Size implements fs.FileInfo.
func (i info) Size() int64 { return int64(len(i.body)) }

// ModTime implements fs.FileInfo.
func (i info) ModTime() time.Time { return i.at }

// IsDir implements fs.FileInfo.
func (i info) IsDir() bool { return strings.HasSuffix(i.name, "/") }

// Sys implements fs.FileInfo.
func (info) Sys() any { return nil }

// Mode implements fs.FileInfo.
func (i info) Mode() fs.FileMode {
	if i.IsDir() {
		return i.mode | fs.ModeDir
	}
	return i.mode
}
