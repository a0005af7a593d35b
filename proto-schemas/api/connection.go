package api

import "time"

// ConnectionList has the connections of the tenant's clients with the gateways that have answered, those that lag first.
type ConnectionList struct {
	Gateway     string       `json:"gateway"`     // instance that has asked the others
	TakenAt     time.Time    `json:"taken_at"`    // by its clock
	Total       int          `json:"total"`       // connections that fit the query, whether they are listed or not
	Connections []Connection `json:"connections"` // the longest lag first, then the newest connection
	Missing     []string     `json:"missing"`     // gateways that have not answered in time
}

// Connection is one client's link to a gateway: a WebSocket, or a stream of server-sent events.
type Connection struct {
	ID        string    `json:"id"` // as in the audit log
	Gateway   string    `json:"gateway"`
	Protocol  string    `json:"protocol"`
	Tenant    string    `json:"tenant"`
	Principal string    `json:"principal"`
	Remote    string    `json:"remote,omitempty"` // address of the client, as the audit log has it
	Since     time.Time `json:"since"`
	Queued    int       `json:"queued_bytes"`           // that wait to be written
	Lagging   bool      `json:"lagging"`                // one of its viewers lags
	Watches   []Watch   `json:"watches"`                // its viewers, those that lag first; at most 10
	More      int       `json:"more_watches,omitempty"` // viewers that are not listed
}

// Watch is a viewer: it shows a log, or the announcements of the tenant.
type Watch struct {
	Log     string    `json:"log,omitempty"`    // KIND/ID; absent: the announcements
	Seq     uint64    `json:"seq,omitempty"`    // the last event whose messages are all queued for the client or sent
	Behind  uint64    `json:"events_behind"`    // newer events of the log
	Waiting int       `json:"waiting_bytes"`    // for which the queue has no room
	Missed  int       `json:"missed,omitempty"` // announcements that the client did not get
	Reason  string    `json:"reason,omitempty"` // of its lag: queue_full, loading, expired; absent: the viewer does not lag
	Lagging time.Time `json:"lagging_since,omitzero"`
}
