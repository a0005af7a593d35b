// Command testsum runs `go test -json` in several modules, shows what a person
// wants to see of it and counts.
//
//	testsum -out FILE -dirs 'DIR DIR ...' -- go test -json ...   run, save raw results in FILE
//	testsum FILE ...                                             sum saved results
//
// On a terminal, the first form shows one line of progress in place of the packages that pass. Both forms end with the
// slowest packages and one line "N passed, N failed" (and ", N skipped" if any were). Both exit with 1 if a test, a package
// or the command itself failed.
// A failed package in which no test failed (it did not build, or its TestMain
// failed) counts as one failure.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	out := flag.String("out", "", "file for the raw results")
	dirs := flag.String("dirs", ".", "folders to run the command in, separated by spaces")
	flag.Parse()
	s := newSum(os.Stdout)
	var err error
	if *out != "" {
		err = s.run(*out, strings.Fields(*dirs), flag.Args())
	} else {
		err = s.load(flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
	}
	s.slowest()
	fmt.Println(s.line())
	if err != nil || s.failed > 0 {
		os.Exit(1)
	}
}

// event is one line of test2json.
type event struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
	Elapsed                                                float64
}

type sum struct {
	w                       io.Writer
	passed, failed, skipped int
	output                  map[string]*strings.Builder // of each test, package and build
	open                    map[string]bool             // tests that have begun and not ended
	broken                  map[string]bool             // packages with a failed test
	took                    map[string]float64          // seconds of each package that has ended
	progress                *progress                   // nil: without a terminal
}

func newSum(w *os.File) *sum {
	s := &sum{output: map[string]*strings.Builder{}, open: map[string]bool{}, broken: map[string]bool{}, took: map[string]float64{}, w: w}
	if info, err := w.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		s.progress = &progress{w: w, began: time.Now()}
		s.w = s.progress
	}
	return s
}

// progress is one line of a terminal that other output pushes down.
type progress struct {
	w           io.Writer
	began, last time.Time
	shown       bool
}

// Write implements io.Writer for the other output.
func (p *progress) Write(b []byte) (int, error) {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
		p.shown = false
	}
	return p.w.Write(b)
}

// show writes the line, at most a few times a second.
func (p *progress) show(s *sum) {
	const often = 200 * time.Millisecond
	if p == nil || time.Since(p.last) < often {
		return
	}
	p.last, p.shown = time.Now(), true
	_, _ = fmt.Fprintf(p.w, "\r\x1b[K%d packages, %s, %s", len(s.took), s.line(), time.Since(p.began).Round(time.Second))
}

// slowest lists the packages that took longest.
func (s *sum) slowest() {
	const most = 10
	names := slices.SortedFunc(maps.Keys(s.took), func(a, b string) int { return cmp.Compare(s.took[b], s.took[a]) })
	if len(names) < 2 {
		return
	}
	_, _ = fmt.Fprintln(s.w, "slowest packages:")
	for _, name := range names[:min(most, len(names))] {
		_, _ = fmt.Fprintf(s.w, "%7.1f s  %s\n", s.took[name], strings.TrimPrefix(name, "github.com/waggle-dev/waggle/"))
	}
}

func (s *sum) line() string {
	l := fmt.Sprintf("%d passed, %d failed", s.passed, s.failed)
	if s.skipped > 0 {
		l += fmt.Sprintf(", %d skipped", s.skipped)
	}
	return l
}

// run executes the command in every folder, one after the other, even if one fails.
func (s *sum) run(out string, dirs, command []string) error {
	if len(command) == 0 {
		return errors.New("no command")
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o750); err != nil {
		return err
	}
	raw, err := os.Create(filepath.Clean(out))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if err := s.runIn(dir, raw, command); err != nil {
			errs = append(errs, fmt.Errorf("%s in %s: %w", command[0], filepath.Base(dir), err))
		}
	}
	return errors.Join(append(errs, raw.Close())...)
}

func (s *sum) runIn(dir string, raw io.Writer, command []string) error {
	c := exec.Command(command[0], command[1:]...) //nolint:gosec // running the given command is the purpose
	c.Dir, c.Stderr = dir, os.Stderr
	pipe, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	err = s.read(io.TeeReader(pipe, raw))
	return errors.Join(err, c.Wait())
}

// load sums files that run has saved.
func (s *sum) load(files []string) error {
	if len(files) == 0 {
		return errors.New("no results")
	}
	for _, name := range files {
		f, err := os.Open(filepath.Clean(name))
		if err != nil {
			return err
		}
		err = s.read(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (s *sum) read(r io.Reader) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			s.take(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *sum) take(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		_, _ = s.w.Write(line) // not an event: a message of the go command
		return
	}
	switch {
	case strings.HasPrefix(e.Action, "build-"):
		s.build(e)
	case e.Action == "output":
		s.keep(e.Package+" "+e.Test, e.Output)
	case e.Test == "":
		s.endPackage(e)
	default:
		s.test(e)
	}
	s.progress.show(s)
}

func (s *sum) build(e event) {
	if e.Action == "build-output" {
		s.keep("build "+e.ImportPath, e.Output)
	}
}

func (s *sum) keep(key, text string) {
	b := s.output[key]
	if b == nil {
		b = &strings.Builder{}
		s.output[key] = b
	}
	b.WriteString(text)
}

func (s *sum) test(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		s.open[key] = true
		return
	case "pass":
		s.passed++
	case "skip":
		s.skipped++
	case "fail":
		s.fail(key, e.Package)
	default:
		return
	}
	delete(s.open, key)
	delete(s.output, key)
}

func (s *sum) fail(key, pkg string) {
	s.failed++
	s.broken[pkg] = true
	_, _ = fmt.Fprintf(s.w, "--- FAILED %s\n", key)
	if b := s.output[key]; b != nil {
		_, _ = io.WriteString(s.w, b.String())
	}
}

func (s *sum) endPackage(e event) {
	switch e.Action {
	case "pass":
		if s.progress == nil {
			_, _ = fmt.Fprintf(s.w, "ok    %s %.1fs\n", e.Package, e.Elapsed)
		}
	case "fail":
		s.endFailed(e)
	}
	if e.Action == "pass" || e.Action == "fail" {
		s.took[e.Package] = e.Elapsed
	}
	delete(s.output, e.Package+" ")
}

// endFailed reports a failed package: the tests that never ended (a crash or a
// time-out took them along), then whatever no test owns.
func (s *sum) endFailed(e event) {
	for key := range s.open {
		if strings.HasPrefix(key, e.Package+" ") {
			s.fail(key, e.Package)
			delete(s.open, key)
		}
	}
	if b := s.output["build "+e.FailedBuild]; b != nil && e.FailedBuild != "" {
		_, _ = io.WriteString(s.w, b.String())
	}
	if !s.broken[e.Package] {
		s.failed++
		if b := s.output[e.Package+" "]; b != nil {
			_, _ = io.WriteString(s.w, b.String())
		}
	}
	_, _ = fmt.Fprintf(s.w, "FAIL  %s %.1fs\n", e.Package, e.Elapsed)
}
