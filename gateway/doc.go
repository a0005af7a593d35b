// Package gateway is the edge of Waggle: it accepts WebSocket connections, turns
// the frames of their clients into commands on the bus and shows them the events of
// the log that they watch.
//
// A gateway is stateless. What it knows dies with it and harms nobody: a client
// that comes back to any other gateway with the last seq it saw gets exactly what
// follows. Every queue has a bound in bytes, and a slow client harms nobody but
// itself.
//
// A socket reads, counts and authenticates in one way, whatever its dialect. There
// are four manners of what follows: one session for each socket; where the codec
// implements dialect.Sessions, as many as the client asks for; where it implements
// dialect.Teams, the team, member or other run that the path or the query names; and
// sockets of the peers of a swarm (dialect.Peers), who have a place in the directory and
// are handed work.
//
// Sockets of all manners, but for those of agents and services, show any run of the
// tenant with the parameter watch=<kind>/<id>, whatever dialect it was begun in, and what
// their clients say to it is handed to whoever manages such runs. Whoever has the role of
// a viewer only is shown everything, and nothing that it asks for is done.
//
// Package admission decides which requests become connections, package transport carries
// messages on them, package stream shows logs on them, package binding says what a stream of
// server-sent events is bound to, and package dialect says what frames mean.
package gateway
