package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// maxContent bounds one write; the bus carries 1 MiB a message anyway.
	maxContent = 1 << 20
	// maxFile bounds the size of a file after appends.
	maxFile = 16 << 20
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file to write, relative to the workspace, for example drafts/plan.md"`
	Content string `json:"content" jsonschema:"the text to write"`
	Append  bool   `json:"append,omitempty" jsonschema:"add the text at the end of the file instead of replacing it"`
}

// put creates, replaces or extends a file. The new content appears at once and
// whole, by rename, after it has reached the disk.
func (s *server) put(ctx context.Context, root *os.Root, tenant id.Tenant, in writeArgs) (done, error) {
	path, err := local(in.Path)
	switch {
	case err != nil:
		return done{}, err
	case path == ".":
		return done{}, errors.New("give the name of a file")
	case len(in.Content) > maxContent:
		return done{}, fmt.Errorf("the content is larger than %d bytes", maxContent)
	case !utf8.ValidString(in.Content):
		return done{}, errors.New("the content is not valid UTF-8")
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := ctx.Err(); err != nil {
		return done{}, err
	}
	mode, old, err := target(root, path)
	if err != nil {
		return done{}, err
	}
	existed := old >= 0
	content := []byte(in.Content)
	if in.Append && existed {
		if content, err = extended(ctx, root, path, in.Content); err != nil {
			return done{}, err
		}
	}
	size := int64(len(content))
	if err := s.folders.usage.admit(ctx, root, tenant, old, size); err != nil {
		return done{}, err
	}
	if err := replace(root, path, content, mode); err != nil {
		return done{}, explain(path, err)
	}
	s.folders.usage.wrote(tenant, old, size)
	return wrote(in, path, existed, content), nil
}

// bytesOf says a size.
func bytesOf(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// wrote answers for a file that has the content now.
func wrote(in writeArgs, path string, existed bool, content []byte) done {
	switch {
	case !existed:
		return done{text: createdMark + clip(path) + " with " + bytesOf(len(content)) + "."}
	case !in.Append:
		return done{text: "Replaced " + clip(path) + " with " + bytesOf(len(content)) + "."}
	}
	d := done{text: appendedMark + bytesOf(len(in.Content)) + " to " + clip(path) + ", which now has " + bytesOf(len(content)) + "."}
	if len(content) <= event.MaxArtifact {
		d.file = content
	}
	return d
}

// target checks the current file at path and returns its size, -1 without a file, and the mode for the new one.
func target(root *os.Root, path string) (mode fs.FileMode, size int64, err error) {
	info, err := root.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0o640, -1, nil
	case err != nil:
		return 0, -1, explain(path, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return 0, -1, fmt.Errorf("%s is a symbolic link; write to the file it stands for", clip(path))
	}
	return info.Mode().Perm(), info.Size(), regular(path, info)
}

// extended returns the content of the file with more added.
func extended(ctx context.Context, root *os.Root, path, more string) ([]byte, error) {
	f, info, err := openFile(root, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size()+int64(len(more)) > maxFile {
		return nil, fmt.Errorf("%s would grow beyond %d bytes", clip(path), maxFile)
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(withContext(ctx, f), maxFile)); err != nil {
		return nil, explain(path, err)
	}
	b.WriteString(more)
	return b.Bytes(), nil
}

// replace writes content beside path, syncs it and renames it over path.
func replace(root *os.Root, path string, content []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	if err := root.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	temp := filepath.Join(dir, tempName())
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Remove(temp))
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return root.Rename(temp, path)
}

// Beginnings of write_file's answers.
const (
	createdMark  = "Created "  // a new file
	appendedMark = "Appended " // to an existing one
)
