package workspace

import (
	"context"
	"io/fs"
	"os"
	"strings"
)

// maxListed bounds the entries of one answer: about as many as a model can use.
const maxListed = 1000

type listArgs struct {
	Path      string `json:"path,omitempty" jsonschema:"the folder to list, relative to the workspace; nothing means the workspace itself"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"also list what is in the folders"`
}

// list returns one line for each file and folder.
func (s *server) list(ctx context.Context, root *os.Root, in listArgs) (string, error) {
	dir, err := local(in.Path)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	n, more := 0, false
	w := &walk{ctx: ctx, root: root, flat: !in.Recursive, visit: func(path string, info fs.FileInfo) error {
		if n == maxListed || b.Len() > maxRead {
			more = true
			return errStop
		}
		n++
		b.WriteString(entry(path, info))
		return nil
	}}
	if err := w.run(dir); err != nil {
		return "", err
	}
	switch {
	case more || w.partial:
		b.WriteString("[The list is cut. List one of the folders, or search by name.]\n")
	case n == 0:
		return "[The folder is empty.]", nil
	}
	return b.String(), nil
}

// entry renders one line of a list. It does not show the target of a link, which may name a place outside.
func entry(path string, info fs.FileInfo) string {
	name := shown(path)
	switch {
	case info.IsDir():
		return name + "/\n"
	case info.Mode()&fs.ModeSymlink != 0:
		return name + " (link)\n"
	case !info.Mode().IsRegular():
		return name + " (device, socket or pipe)\n"
	}
	return name + " (" + bytesOf(int(info.Size())) + ")\n"
}
