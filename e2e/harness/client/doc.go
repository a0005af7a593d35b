// Package client has a client of each dialect for tests. Orbit, RawMyAgent and Swarm speak raw frames on one socket;
// MyAgent, Team, TeamRecorder and Reconnecting stand on sdk/go/link and connect again. All keep their frames.
package client
