package binding

import (
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Commands turns intents in a log into commands. The target is the run that the
// connection names, nil = none. The error is a *fault.Fault where the log does not take an intent.
func Commands(t *Target, log subject.Log, intents ...dialect.Intent) ([]command.Command, error) {
	taskID := log.Entity.String()
	if t.Called(taskID) {
		taskID = t.Name
	}
	out := make([]command.Command, 0, len(intents))
	for _, i := range intents {
		cmd, err := address(log, taskID, i)
		if err != nil {
			return nil, err
		}
		out = append(out, cmd)
	}
	return out, nil
}

// address returns the command that an intent becomes in the log. taskID is the id of a task as clients know it.
func address(log subject.Log, taskID string, i dialect.Intent) (command.Command, error) {
	c := command.Command{ID: i.ID, Request: i.Request, Tenant: log.Tenant, Key: log.Entity, Member: i.Member}
	if log.Kind == id.KindMember {
		team, ok := id.TeamOf(log.Entity)
		if !ok {
			return c, fault.Newf(fault.AgentNotFound, "This agent is not part of a team, so you cannot send to it here.")
		}
		c.Key, c.Member = team, log.Entity.String()
	}
	r, ok := table[i.Action()][log.Kind]
	if !ok {
		return c, fault.Newf(fault.UnknownType, "Runs of kind %s do not accept %s. Send a message, an answer to a question, or cancel.", log.Kind, i.Action())
	}
	c.Service, c.Verb = r.service, r.verb
	var err error
	c.Data, err = r.encode(taskID, i.Data)
	return c, err
}

// encode returns the data of the command.
func (r route) encode(taskID string, of dialect.IntentData) (json.RawMessage, error) {
	var data any = of
	if r.data != nil {
		var err error
		if data, err = r.data(taskID, of); err != nil {
			return nil, fmt.Errorf("make the data of %s.%s: %w", r.service, r.verb, err)
		}
	}
	marshal := json.Marshal
	if r.unescaped {
		marshal = plainjson.Marshal
	}
	b, err := marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode the data of %s.%s: %w", r.service, r.verb, err)
	}
	return b, nil
}
