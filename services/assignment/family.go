package assignment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// family is the tasks that agents with this task gave to other agents.
type family struct {
	children map[string]*child
	childIDs []string // as created
}

// child is a task that the task's agent gave to another agent. Made is kept until its end.
type child struct {
	made         *event.ChildCreatedData
	attempt      int    // whose agent asked for it
	began, ended uint64 // sequences
}

// Given returns the ids of all tasks that agents with this task asked for.
func (fm *family) Given() []string { return fm.childIDs }

// that returns the open children that pass, as created.
func (fm *family) that(pass func(event.TaskHead) bool) []string {
	var out []string
	for _, id := range fm.childIDs {
		if c := fm.children[id].made; c != nil && pass(c.TaskHead) {
			out = append(out, id)
		}
	}
	return out
}

func (fm *family) childHead(childID string) *event.TaskHead {
	if made := fm.children[childID].made; made != nil {
		return &made.TaskHead
	}
	return nil
}

// childOf returns the id of the child that an agent requests: the command's proposal, unless a
// child of an attempt before this one has it.
func (fm *family) childOf(d command.SpawnChild, attempt int) string {
	if c := fm.children[d.ChildID]; c != nil && c.attempt < attempt {
		return childAt(d.ChildID, attempt)
	}
	return d.ChildID
}

// childAt returns the id of a child in an attempt whose proposed id is taken.
func childAt(proposed string, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", proposed, attempt))
	h := hex.EncodeToString(sum[:16])
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

// maxAttempts is more than any task may have.
const maxAttempts = 100

// childMade returns the id of the newest child that was made for the agent's request,
// empty if none was.
func (fm *family) childMade(d command.SpawnChild, attempt int) string {
	for n := min(attempt, maxAttempts); n > 1; n-- {
		if childID := childAt(d.ChildID, n); fm.children[childID] != nil {
			return childID
		}
	}
	if fm.children[d.ChildID] == nil {
		return ""
	}
	return d.ChildID
}

// childAgain returns the events that answer the request for a child.
func (fm *family) childAgain(childID string) []uint64 {
	c := fm.children[childID]
	if c == nil {
		return nil
	}
	return append([]uint64{c.began}, told(c.ended)...)
}

func (fm *family) foldChildFinished(e event.Event, d event.ChildFinishedData) {
	if c := fm.children[d.ChildID]; c != nil {
		c.made, c.ended = nil, e.Sequence
	}
}
