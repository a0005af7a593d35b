// Package verify checks the promises of the architecture against the logs, which it reads past the code under test, and
// against the frames of each client.
package verify
