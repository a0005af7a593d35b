package api

import "time"

// Installation is what a look at the running installation has found.
type Installation struct {
	Gateway   string        `json:"gateway"`    // instance that has looked
	TakenAt   time.Time     `json:"taken_at"`   // those who ask at once get the findings of one look
	NATS      NATSServer    `json:"nats"`       // that the gateway is connected to
	Processes []ProcessInfo `json:"processes"`  // by role and instance
	Findings  []Finding     `json:"findings"`   // the worst do not come first: the order of the checks
	UpToDate  bool          `json:"up_to_date"` // all processes have one version
}

// NATSServer is a server of NATS.
type NATSServer struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version"`
}

// ProcessInfo is a replica of a role. A process with several roles is a replica of each.
type ProcessInfo struct {
	Role     string    `json:"role"`
	Instance string    `json:"instance"`
	Version  string    `json:"version,omitempty"` // absent: the process is older than this member
	Go       string    `json:"go,omitempty"`
	Started  time.Time `json:"started"` // by its own clock
}

// Finding is the result of a check.
type Finding struct {
	Level string `json:"level"`        // OK, WARN, FAIL
	What  string `json:"what"`         // the subject of the check
	Is    string `json:"is"`           // the observed state
	Do    string `json:"do,omitempty"` // the remedy; absent if OK
}

// RateList has the rates of all processes of the installation together. Points of two processes are up to one interval apart.
type RateList struct {
	Gateway   string        `json:"gateway"`   // instance that has asked the others
	TakenAt   time.Time     `json:"taken_at"`  // those who ask at once get one list
	Seconds   int           `json:"seconds"`   // between two points
	Processes []RateProcess `json:"processes"` // that the rates include; the gateway's comes first
	Missing   []RateProcess `json:"missing"`   // processes that have not answered in time
	Rates     []Rate        `json:"rates"`
}

// RateProcess is a process and its roles.
type RateProcess struct {
	Instance string   `json:"instance"`
	Roles    []string `json:"roles"`
}

// Rate is how often something happened, and how long it took.
type Rate struct {
	// requests, messages, frames, events, deliveries, commands, tools, models, runs (that ended), failures (of runs), tokens, cost (in
	// millionths of a dollar)
	Name   string    `json:"name"`
	Recent float64   `json:"recent"`           // a second, over the last minute
	P50    float64   `json:"p50_ms,omitempty"` // median of all points in milliseconds; absent: nothing was measured
	P99    float64   `json:"p99_ms,omitempty"`
	Points []float64 `json:"points"` // a second, oldest first; at most 180
	// How long it took in each minute, oldest first; at most 15. Absent: it is not measured.
	Minutes []RateMinute `json:"minutes,omitempty"`
}

// RateMinute is how long something took in a minute.
type RateMinute struct {
	P50 float64 `json:"p50_ms,omitempty"` // median in milliseconds; absent: it did not happen
	P99 float64 `json:"p99_ms,omitempty"`
}
