package api

// Reindex asks for a part of the index to be rebuilt from the logs.
type Reindex struct {
	Kind  string `json:"kind"`            // of the logs: session, member, task
	After string `json:"after,omitempty"` // next of the last answer; absent: from the beginning
}

// Reindexed is what a part of the work came to.
type Reindexed struct {
	Logs    int64  `json:"logs"`           // that were read
	Written int64  `json:"written"`        // entries that were not what the logs say, and are now
	Next    string `json:"next,omitempty"` // where the rest begins; absent: all is done
}
