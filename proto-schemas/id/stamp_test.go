package id

import (
	"testing"
	"time"
)

// TestStamp: the time of a UUID of version 7, whatever follows it.
func TestStamp(t *testing.T) {
	for _, s := range []string{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f-pyxen_US"} {
		at, ok := Stamp(s)
		if want := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC); !ok || !at.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", s, at, ok, want)
		}
	}
	for _, s := range []string{"", "s1", "017f22e2-79b0-4cc3-98c4-dc0c0c07398f", "017f22e2x79b0-7cc3-98c4-dc0c0c07398f", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "017f22e2-79b0-7cc3-98c4-dc0c0c07398"} {
		if at, ok := Stamp(s); ok {
			t.Errorf("%q: got %v, want none", s, at)
		}
	}
}
