package workspace

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/waggle-dev/waggle/services/tools"
)

// writeFile is the tool that writes.
const writeFile = "write_file"

// Writing is what a call has done to a file.
type Writing struct {
	Path     string // clean, with slashes
	Created  bool   // else the file existed
	Contents []byte // of the whole file, as the call has left it
	Known    bool   // Contents are: they are not those of a large file that was extended
}

// Written returns what a call of a tool of this server has done to a file. ok is false for calls that have written nothing.
func Written(tool string, arguments json.RawMessage, result tools.Result) (w Writing, ok bool) {
	var in writeArgs
	if tool != writeFile || json.Unmarshal(arguments, &in) != nil {
		return w, false
	}
	clean, err := local(in.Path)
	if err != nil || clean == "." {
		return w, false
	}
	w = Writing{Path: filepath.ToSlash(clean), Created: strings.HasPrefix(result.Text, createdMark), Contents: []byte(in.Content), Known: true}
	if strings.HasPrefix(result.Text, appendedMark) {
		w.Contents, w.Known = result.File, result.File != nil
	}
	return w, true
}
