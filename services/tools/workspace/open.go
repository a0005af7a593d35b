package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// maxPath is the longest path accepted: PATH_MAX of Linux.
const maxPath = 4096

// errIrregular refuses devices, sockets and pipes.
var errIrregular = errors.New("is a device, socket or pipe, which are not served")

// local checks a path from outside and returns it cleaned. The check gives good messages early; os.Root gives the guarantee.
func local(path string) (string, error) {
	switch {
	case len(path) > maxPath:
		return "", fmt.Errorf("the path is longer than %d bytes", maxPath)
	case strings.ContainsRune(path, 0):
		return "", errors.New("the path has a NUL byte in it")
	case !utf8.ValidString(path):
		return "", errors.New("the path is not valid UTF-8")
	case filepath.IsAbs(path) || strings.HasPrefix(path, "/"):
		return "", fmt.Errorf("%s is an absolute path; use one relative to the workspace, for example notes.md", clip(path))
	case path == "":
		return ".", nil
	}
	clean := filepath.Clean(path)
	if !filepath.IsLocal(clean) {
		return "", outside(path)
	}
	return clean, nil
}

// openFile opens a regular file for reading. It checks the type before, so that it never opens a device, and again on the
// open file, which may have been swapped; O_NONBLOCK keeps a pipe that was swapped in from blocking.
func openFile(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(path)
	if err != nil {
		return nil, nil, explain(path, err)
	}
	if err := regular(path, info); err != nil {
		return nil, nil, err
	}
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, explain(path, err)
	}
	info, err = f.Stat()
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(explain(path, err), f.Close())
	}
	return f, info, nil
}

func regular(path string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return fmt.Errorf("%s is a folder", clip(path))
	}
	return fmt.Errorf("%s %w", clip(path), errIrregular)
}

// explain turns an error of the file system into one sentence about the caller's path. It never names the workspace's place
// on the host.
func explain(path string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", clip(path))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be accessed: permission denied", clip(path))
	case strings.Contains(err.Error(), "path escapes"):
		return outside(path)
	case errors.As(err, &pe):
		return fmt.Errorf("%s: %w", clip(path), pe.Err)
	case errors.As(err, &le):
		return fmt.Errorf("%s: %w", clip(path), le.Err)
	}
	return err
}

func outside(path string) error {
	return fmt.Errorf("%s leads out of the workspace", clip(path))
}

// clip keeps hostile names from filling an error message or breaking its line.
func clip(s string) string {
	const limit = 200
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		s = fmt.Sprintf("%q", s)
	}
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return s
}
