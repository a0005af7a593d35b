package process

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is what the tests of a binary share. As a testing.TB it is the scope of processes that outlive the test which has
// started them.
type Shared struct {
	testing.TB // nil: what is not here is not for what is shared

	once  sync.Once
	up    bool       // it was started, all of it
	first testing.TB // the test that starts it, while it does

	mu     sync.Mutex
	failed bool
	ends   []func()
}

// Begin starts what is shared, for the first test that needs it. If that fails, all tests that need it fail.
func (s *Shared) Begin(t testing.TB, start func()) {
	t.Helper()
	s.once.Do(func() {
		s.first = t
		defer func() { s.first = nil }()
		start()
		s.up = true
	})
	if !s.up {
		t.Fatal("the shared processes did not start: see the first test that failed")
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.fail()
		}
	})
}

// End ends what was started, and reports whether it was in order. TestMain calls it after all tests.
func (s *Shared) End() bool {
	s.mu.Lock()
	ends := s.ends
	s.ends = nil
	s.mu.Unlock()
	before := s.Failed()
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
	return before || !s.Failed()
}

func (s *Shared) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
}

// Helper implements testing.TB.
func (s *Shared) Helper() {}

// Name implements testing.TB.
func (s *Shared) Name() string { return "shared" }

// Context implements testing.TB.
func (s *Shared) Context() context.Context { return context.Background() }

// Cleanup implements testing.TB: the function is called by End.
func (s *Shared) Cleanup(end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, end)
}

// TempDir implements testing.TB: the folder lasts until End.
func (s *Shared) TempDir() string {
	dir, err := os.MkdirTemp("", "waggle-shared-")
	if err != nil {
		s.Errorf("%v", err)
		s.FailNow()
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Setenv implements testing.TB: the value stays.
func (s *Shared) Setenv(key, value string) {
	if err := os.Setenv(key, value); err != nil {
		s.Fatal(err)
	}
}

// Failed implements testing.TB: a test that shares it has failed, or it itself has.
func (s *Shared) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Logf implements testing.TB.
func (s *Shared) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "shared: "+format+"\n", args...)
}

// Errorf implements testing.TB.
func (s *Shared) Errorf(format string, args ...any) {
	if s.fail(); s.first != nil {
		s.first.Errorf(format, args...)
		return
	}
	s.Logf(format, args...)
}

// Fatal implements testing.TB.
func (s *Shared) Fatal(args ...any) {
	s.Errorf("%s", fmt.Sprint(args...))
	s.FailNow()
}

// FailNow implements testing.TB. After the start nothing calls it.
func (s *Shared) FailNow() {
	if s.first == nil {
		panic("a shared process failed after its start")
	}
	s.first.FailNow()
}
