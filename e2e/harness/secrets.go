package harness

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Canary is part of every secret that tests hand out. No process ever prints it.
const Canary = "canary-7f3a"

// minSecret keeps words that anybody may say from being secrets.
const minSecret = 8

// lookout knows every secret of a test binary's run, and has looked for it in what every
// process has printed.
var lookout = struct {
	mu        sync.Mutex
	secrets   map[string]string // by value: whose
	processes int
	lines     int
	leaks     []string
}{secrets: map[string]string{Canary: "a key that a test handed out"}}

// Secret makes a value known that no process may print from now on: a key or a token that
// was made by chance.
func Secret(whose, value string) {
	if len(value) < minSecret {
		return
	}
	lookout.mu.Lock()
	defer lookout.mu.Unlock()
	lookout.secrets[value] = whose
}

// spilled looks for secrets in what a process has printed, and returns whose they are.
func spilled(process, output string) (whose []string) {
	lookout.mu.Lock()
	defer lookout.mu.Unlock()
	lookout.processes++
	lookout.lines += strings.Count(output, "\n")
	for value, of := range lookout.secrets {
		if strings.Contains(output, value) {
			whose = append(whose, of)
			lookout.leaks = append(lookout.leaks, process+" printed "+of)
		}
	}
	return whose
}

// Audit is for the end of a test binary: it says in how many lines of how many processes
// secrets were looked for, and returns code, or 1 if one was found, whatever test that
// was in.
func Audit(code int) int {
	lookout.mu.Lock()
	defer lookout.mu.Unlock()
	fmt.Fprintf(os.Stderr, "%d secrets looked for in %d lines of %d processes: %d found %s\n",
		len(lookout.secrets), lookout.lines, lookout.processes, len(lookout.leaks), strings.Join(lookout.leaks, "; "))
	if len(lookout.leaks) > 0 && code == 0 {
		return 1
	}
	return code
}
