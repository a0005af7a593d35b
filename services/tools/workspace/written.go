package workspace

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// writeFile is the tool that writes.
const writeFile = "write_file"

// Written returns the file that a call of a tool of this server has written, as a clean path with slashes, and whether the
// call created it. ok is false for calls that have written nothing. result is the tool's text.
func Written(tool string, arguments json.RawMessage, result string) (path string, created, ok bool) {
	var in writeArgs
	if tool != writeFile || json.Unmarshal(arguments, &in) != nil {
		return "", false, false
	}
	clean, err := local(in.Path)
	if err != nil || clean == "." {
		return "", false, false
	}
	return filepath.ToSlash(clean), strings.HasPrefix(result, createdMark), true
}
