// Package gateway is the edge of Waggle: it accepts WebSocket connections, turns
// the frames of their clients into commands on the bus and shows them the events of
// the log that they watch.
//
// A gateway is stateless. Its memory is dispensable: a client that reconnects to any other
// gateway with the last seq that it saw gets exactly the events after it. Every queue has a
// bound in bytes, and a slow client delays only itself.
//
// A connection reads, counts and authenticates in one way, whatever its dialect. Its route
// names the binding that handles its messages: Single, Multi, Team or Swarm. Connections of
// all routes, except for those of agents and services, show any run of the tenant with the
// parameter watch=<kind>/<id>, whatever dialect it was begun in; the messages of their clients
// go to the service that manages such runs. A principal with the role of a viewer sees
// everything, and its commands are refused.
//
// Package admission decides which requests become connections, package transport carries
// messages on them, package stream shows logs on them, package binding connects them to sessions,
// runs or the swarm, and package dialect translates frames.
package gateway
