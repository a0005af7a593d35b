package api

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/internal/eventlog"
)

// shown returns the stored form of an event as people may read it.
func shown(e *eventlog.Entry) json.RawMessage { return eventdata.RawForPeople(e.Type, e.Raw) }
