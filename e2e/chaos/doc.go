// Package chaos breaks parts of an installation while clients of all four dialects are at work, and reports which
// promises held.
//
// Package site runs the installation, load the clients. Package fault breaks one part after the other, by a seed, and
// keeps the evidence. Package verify reads the logs past the code under test, and compares them with the frames of each
// client; report writes the verdicts as a table. Round does all this for one fault. The command is "make chaos"; a
// smaller run is part of the end-to-end tests.
package chaos
