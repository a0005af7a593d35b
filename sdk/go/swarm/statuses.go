package swarm

import "github.com/waggle-dev/waggle/proto-schemas/command"

// describe makes status the word of the protocol's description, which is that of the
// constants here, and state the other one: which is which is a setting of the server.
func describe(status, state *string) {
	if command.VocabularyOf(*state) == command.VocabularyDocument || *state != "" && command.VocabularyOf(*status) == command.VocabularySDK {
		*status, *state = *state, *status
	}
}

// The statuses of lists are in the words of the constants here.

func describeAgents(l []AgentEntry) []AgentEntry {
	for i := range l {
		describe(&l[i].Status, &l[i].State)
	}
	return l
}

func describeServers(l []ServerEntry) []ServerEntry {
	for i := range l {
		describe(&l[i].Status, &l[i].State)
	}
	return l
}
