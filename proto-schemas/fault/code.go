package fault

// Code identifies one entry of the catalogue. Codes are part of the contract.
type Code string

// Blame names the party that can resolve a fault.
type Blame string

// The parties that can resolve a fault.
const (
	Client   Blame = "client"
	Server   Blame = "server"
	Provider Blame = "provider" // a model or tool outside Waggle
)

// Entry describes a code.
type Entry struct {
	Code      Code
	Status    int    // HTTP status of API answers
	Close     int    // WebSocket close code if the fault ends the connection; 0 = the connection stays open
	Retryable bool   // the same request may succeed later
	Blame     Blame  //
	Message   string // default text: the problem, then the remedy
}
