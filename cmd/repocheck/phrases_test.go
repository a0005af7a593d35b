package repocheck

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Forms of a log message that the rule refuses.
var (
	// order matches a message that begins with a verb in its base form and so reads as an order: "lose result of task".
	order = regexp.MustCompile(`^(abandon|accept|answer|ask|begin|close|confirm|connect|decide|decode|delete|discard|drop|encode|end|fail|fetch|find|forget|` +
		`forward|get|give|go|hand|hide|ignore|keep|leave|listen|load|lose|make|miss|parse|postpone|put|reach|read|receive|reconnect|recover|refuse|reject|release|` +
		`reload|remember|remove|replace|reread|reset|restart|retry|run|send|settle|shut|skip|start|stop|store|take|tell|try|unsubscribe|use|wait|withdraw|write)\b`)
	// translated matches words that a native speaker does not use in a log.
	translated = regexp.MustCompile(`(?i)\b(again|behind|beside|go(es)? on|gives? up|for lack of|has to|is called|what|who|whose|I|me|my|we|us|our)\b`)
	// named matches the first word of a message that may begin with a capital letter: an acronym.
	named = regexp.MustCompile(`^[A-Z]{2,}\b`)
)

// badMessage returns the fault of a log message, or "".
func badMessage(text string) string {
	switch {
	case len(strings.Fields(text)) < 2:
		return "name a thing and what happened to it"
	case text[0] < 'a' || text[0] > 'z':
		if !named.MatchString(text) {
			return "begin in lower case"
		}
	case order.MatchString(text):
		return "say what happened, not what to do"
	}
	switch {
	case strings.ContainsAny(text[len(text)-1:], ".!?:,; "):
		return "end without punctuation"
	case strings.Contains(text, "%"):
		return "put values into fields"
	case translated.MatchString(text) || excluded(text) != "":
		return "use the usual words"
	}
	return ""
}

func TestTheRuleForLogMessagesFindsFaults(t *testing.T) {
	for _, text := range []string{
		"", "stopped", "A socket ended", "Task result dropped", "lose result of task", "drop queued messages", "tell agent later", "fail to read log",
		"task result dropped.", "waiting for NATS ", "task %s dropped", "registry read again", "stream is behind its leader", "log goes on without snapshots",
		"we lost the connection", "there is no worker",
	} {
		require.NotEmpty(t, badMessage(text), text)
	}
	for _, text := range []string{
		"task result dropped", "NATS connection lost", "request rejected: NATS unavailable", "agent notification will be retried",
		"listening for clients", "failed to read log", "gateway lease left to expire",
	} {
		require.Empty(t, badMessage(text), text)
	}
}

// An operator searches a log for one text: a message says what happened to what, and its values are in fields.
func TestLogMessagesSayWhatHappened(t *testing.T) {
	messages := 0
	eachGoFile(t, func(name string, f *ast.File, at func(ast.Node) int) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || fun.Sel.Name != "Msg" && fun.Sel.Name != "Msgf" {
				return true
			}
			switch text := call.Args[0].(type) {
			case *ast.BasicLit:
				message, err := strconv.Unquote(text.Value)
				require.NoError(t, err)
				messages++
				if fault := badMessage(message); fault != "" {
					t.Errorf("%s:%d: %q: %s, as in %q", name, at(text), message, fault, "task result dropped")
				}
			case *ast.BinaryExpr, *ast.CallExpr:
				if name != foreignMessages {
					t.Errorf("%s:%d: put values into fields, not into the message", name, at(call))
				}
			}
			return true
		})
	})
	require.Greater(t, messages, 150)
}

// foreignMessages is the file that logs messages of the embedded NATS server as they are.
const foreignMessages = "internal/bus/embedded/log.go"

// eachGoFile calls f with the parsed Go files of all modules, by their paths in the repository.
func eachGoFile(t *testing.T, f func(name string, file *ast.File, line func(ast.Node) int)) {
	t.Helper()
	files, err := goFiles()
	require.NoError(t, err)
	for _, g := range files {
		f(g.name, g.file, func(n ast.Node) int { return fileSet.Position(n.Pos()).Line })
	}
}

// goFile is a parsed file of the repository, with its path below the top.
type goFile struct {
	name string
	file *ast.File
}

// fileSet has the positions of goFiles.
var fileSet = token.NewFileSet()

// goFiles returns the files of all modules. It parses them once for all tests.
var goFiles = sync.OnceValues(func() (all []goFile, err error) {
	top, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	dirs, err := moduleFolders()
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		err = errors.Join(err, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && path != dir && slices.Contains(dirs, path) {
				return filepath.SkipDir // a module within this one
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			file, err := parser.ParseFile(fileSet, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(top, path)
			all = append(all, goFile{name, file})
			return err
		}))
	}
	return all, err
})
