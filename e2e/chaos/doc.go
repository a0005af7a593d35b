// Package chaos runs a whole installation, breaks parts of it while clients of all four
// dialects are at work, and says which promises held.
//
// A Site is the installation: three NATS servers, two gateways and two processes of
// every service, each under its own user of the bus and, where the machine allows it, in
// a network namespace of its own. Load is what the clients do. A Nemesis breaks things,
// by a seed, and keeps the evidence that it did. A Verdict is read from the logs, which
// are looked at message by message past the code under test, and from what each client
// saw. The command is "make chaos"; a smaller run is part of the end-to-end tests.
package chaos
