package command

import "github.com/waggle-dev/waggle/proto-schemas/id"

// Installation answers operators' requests about the installation as a whole. It has no commands.
var Installation = id.MustName("installation")

// Verbs of Installation for request and reply.
var (
	ListLetters   = id.MustName("list_letters")   // PageRequest -> api.DeadLetterList
	ShowLetter    = id.MustName("show_letter")    // LetterRequest -> letters.Letter
	DiscardLetter = id.MustName("discard_letter") // LetterRequest -> nothing
	ListQueues    = id.MustName("list_queues")    // nothing -> api.QueueList
	ListUse       = id.MustName("list_use")       // UseRequest -> api.QuotaList
	ListRecords   = id.MustName("list_records")   // RecordsRequest -> api.AuditPage
	VerifyRecords = id.MustName("verify_records") // api.VerifyAudit -> api.AuditCheck
)

// Letters returns commands of services that were given up to their queue. Gateways send those of clients again themselves. Its verbs are the names of the services that own a queue:
// LetterRequest -> ResendReply.
var Letters = id.MustName("letters")

// Process is each process of the installation. All of them answer a request, and not one for the others.
var Process = id.MustName("process")

// ListRates asks all processes for what they have counted in the last quarter of an hour, without data.
var ListRates = id.MustName("list_rates")

// Gateways are all gateways of the installation. Each of them answers a request that is for it, and not one for the others.
var Gateways = id.MustName("gateway")

// ListConnections asks gateways for the connections of their clients: ConnectionsRequest.
var ListConnections = id.MustName("list_connections")

// ConnectionsRequest asks for connections of a tenant's clients.
type ConnectionsRequest struct {
	Tenant  id.Tenant `json:"tenant"`
	Gateway string    `json:"gateway,omitempty"` // only those with this instance; empty: with all
	Lagging bool      `json:"lagging,omitempty"` // only those that lag
	Limit   int       `json:"limit"`
}

// Reindex asks the session, team or task service to rebuild a part of its entries in the index: ReindexRequest -> api.Reindexed.
var Reindex = id.MustName("reindex")

// ReindexRequest names the tenant whose entries are rebuilt, and where the last request ended.
type ReindexRequest struct {
	Tenant id.Tenant `json:"tenant"`
	After  string    `json:"after,omitempty"` // as api.Reindexed.Next; empty: from the beginning
}

// PageRequest asks for a page of what a tenant has, the newest first.
type PageRequest struct {
	Tenant id.Tenant `json:"tenant"`
	Before uint64    `json:"before,omitempty"` // place of the oldest item of the previous page; 0 = the end
	Limit  int       `json:"limit"`
}

// LetterRequest names a dead letter of a tenant.
type LetterRequest struct {
	Tenant   id.Tenant `json:"tenant"`
	Sequence uint64    `json:"sequence"`
}

// ResendReply names the command that was queued.
type ResendReply struct {
	CommandID string `json:"command_id"`
}

// UseRequest asks how much of their quotas a principal and its tenant use. All means every principal of the tenant.
type UseRequest struct {
	Tenant    id.Tenant `json:"tenant"`
	Principal string    `json:"principal"`
	All       bool      `json:"all,omitempty"`
}

// RecordsRequest asks for a page of the audit records of a tenant. Empty filters allow everything.
type RecordsRequest struct {
	PageRequest
	Principal string `json:"principal,omitempty"`
	Action    string `json:"action,omitempty"`
	Entity    string `json:"entity,omitempty"`
}
