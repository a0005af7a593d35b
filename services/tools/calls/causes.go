package calls

import (
	"errors"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Causes with which contexts of calls end early.
var (
	ErrCancelled = errors.New("the call was cancelled")
	ErrTimeout   = errors.New("the call's time is over")
	ErrStopping  = errors.New("the tool service is stopping")
)

// Interrupted returns the fault of a call whose context ended with the cause. ran reports whether the tool may have started.
func Interrupted(cause error, ran bool) error {
	switch {
	case errors.Is(cause, ErrTimeout) && !ran:
		return fault.Newf(fault.ToolsDown, "The tool server could not be reached in time. Nothing was run.").Wrap(cause)
	case errors.Is(cause, ErrTimeout):
		return fault.New(fault.ToolTimeout).Wrap(cause)
	case errors.Is(cause, ErrStopping) && ran:
		return fault.New(fault.ToolLost).Wrap(cause)
	case errors.Is(cause, ErrStopping):
		return fault.New(fault.ToolsDown).Wrap(cause)
	}
	return fault.New(fault.ToolCancelled).Wrap(cause)
}
