package process

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Canary is part of every secret that tests hand out. No process ever prints it.
const Canary = "canary-7f3a"

// minSecret keeps ordinary words from being secrets.
const minSecret = 8

// leaks knows every secret of a test binary's run, and has looked for it in what every
// process has printed.
var leaks = struct {
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
	leaks.mu.Lock()
	defer leaks.mu.Unlock()
	leaks.secrets[value] = whose
}

// findSecrets looks for secrets in what a process has printed, and returns whose they are.
func findSecrets(process, output string) (whose []string) {
	leaks.mu.Lock()
	defer leaks.mu.Unlock()
	leaks.processes++
	leaks.lines += strings.Count(output, "\n")
	for value, of := range leaks.secrets {
		if strings.Contains(output, value) {
			whose = append(whose, of)
			leaks.leaks = append(leaks.leaks, process+" printed "+of)
		}
	}
	return whose
}

// Audit is for the end of a test binary: it says in how many lines of how many processes
// secrets were looked for, and returns code, or 1 if one was found, whatever test that
// was in.
func Audit(code int) int {
	leaks.mu.Lock()
	defer leaks.mu.Unlock()
	fmt.Fprintf(os.Stderr, "%d secrets looked for in %d lines of %d processes: %d found %s\n",
		len(leaks.secrets), leaks.lines, leaks.processes, len(leaks.leaks), strings.Join(leaks.leaks, "; "))
	if len(leaks.leaks) > 0 && code == 0 {
		return 1
	}
	return code
}
