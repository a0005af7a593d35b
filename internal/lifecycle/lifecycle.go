// Package lifecycle starts, drains and stops the parts of a process.
//
// Three different words: Start returns once a component runs, Drain lets it
// finish what it has begun, Stop ends it now.
package lifecycle

import "context"

// Component is a part of the process with a life of its own. Every implementation
// passes lifecycletest.Exercise.
type Component interface {
	// Name identifies the component in logs and errors.
	Name() string

	// Start returns nil once the component runs, or an error when it cannot; then
	// nothing of it is left behind. It is called at most once. ctx bounds the start
	// only: when it ends before Start has returned, Start gives up and returns ctx's
	// error; afterwards its end means nothing. Start after Stop returns an error.
	Start(ctx context.Context) error

	// Drain takes no new work, finishes what is on and returns nil, or returns
	// ctx's error when ctx ends first. It may be called before Start and after Stop,
	// or once the component has failed, and then returns at once. The component is not
	// usable afterwards; Stop follows.
	Drain(ctx context.Context) error

	// Stop ends the component now, without finishing work, and returns when
	// everything of it has ended. It is idempotent, legal before Start and safe to call
	// while Start or Drain are running, which then return early.
	Stop()

	// Failed returns a channel that receives an error, or is closed, when the
	// component ends without having been asked to. The channel is the same at every call
	// and may be nil for a component that cannot fail by itself. What happens to it after
	// Drain or Stop was called is not looked at.
	Failed() <-chan error
}
