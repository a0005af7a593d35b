// Package lifecycle starts, drains and stops the parts of a process.
//
// Start returns once a component runs, Drain lets it finish its work in progress, Stop ends it now.
package lifecycle

import "context"

// Component is a part of the process with its own life cycle. Every implementation passes lifecycletest.Exercise.
type Component interface {
	// Name identifies the component in logs and errors.
	Name() string

	// Start returns nil once the component runs, or an error when it cannot run; then it leaves nothing behind. It is
	// called at most once. ctx bounds the start only: when it ends before Start has returned, Start gives up and
	// returns ctx's error; its later end has no effect. Start after Stop returns an error.
	Start(ctx context.Context) error

	// Drain accepts no new work, finishes the work in progress and returns nil, or returns ctx's error when ctx ends
	// first. It may be called before Start and after Stop, or once the component has failed, and then returns at once.
	// The component is not usable afterwards; Stop follows.
	Drain(ctx context.Context) error

	// Stop ends the component now, without finishing work, and returns when all its parts have ended. It is
	// idempotent, legal before Start and safe to call while Start or Drain run, which then return early.
	Stop()

	// Failed returns a channel that receives an error, or is closed, when the component ends without a request. The
	// channel is the same at every call and may be nil for a component that cannot fail by itself. Its state after a
	// call of Drain or Stop does not matter.
	Failed() <-chan error
}
