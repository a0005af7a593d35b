package snapshot

import "strings"

// Kinds of items.
const (
	itemUser     = "user"
	itemAnswer   = "answer"
	itemTool     = "tool"
	itemPlan     = "plan"
	itemDecision = "decision"
	itemRetry    = "retry"
	itemNotice   = "notice"
	itemEnd      = "end"
)

// States of steps, plans, calls and bars.
const (
	stateWaiting   = "waiting"
	stateRunning   = "running"
	stateCompleted = "completed"
	stateFailed    = "failed"
	stateCancelled = "cancelled"
	stateUnknown   = "unknown"
)

// Kinds of bars.
const (
	barRun    = "run"
	barQueue  = "queue"
	barJob    = "job"
	barModel  = "model"
	barTool   = "tool"
	barPeople = "people"
	barPause  = "pause"
	barStep   = "step"
)

func ptr[T any](v T) *T { return &v }

// filled returns a copy of a list that is not nil.
func filled[T any](list []T) []T {
	return append(make([]T, 0, len(list)), list...)
}

// join returns the route of a name below another one.
func join(route, name string) string {
	if route == "" {
		return name
	}
	return route + "/" + name
}

// split returns the route above a route, and its last name.
func split(route string) (above, name string) {
	n := strings.LastIndexByte(route, '/')
	return route[:max(0, n)], route[n+1:]
}
