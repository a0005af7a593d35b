// Command testsum runs `go test -json` in several modules, shows what a person
// wants to see of it and counts.
//
//	testsum -out FILE -dirs 'DIR DIR ...' -- go test -json ...   run, save raw results in FILE
//	testsum FILE ...                                             sum saved results
//
// The second form ends with one line "N passed, N failed" (and ", N skipped" if
// any were). Both exit with 1 if a test, a package or the command itself failed.
// A failed package in which no test failed (it did not build, or its TestMain
// failed) counts as one failure.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
}

func newSum(w io.Writer) *sum {
	return &sum{w: w, output: map[string]*strings.Builder{}, open: map[string]bool{}, broken: map[string]bool{}}
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
		_, _ = fmt.Fprintf(s.w, "ok    %s %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		s.endFailed(e)
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
