// Package waggle lets a Go program use a Waggle gateway: chats and planned sessions, their
// questions, teams of agents, and the HTTP API. Package swarm has the agents, services and clients
// of the swarm.
//
//	w, err := waggle.Open(ctx, "ws://127.0.0.1:9000", waggle.Options{Token: key})
//	if err != nil {
//		return err
//	}
//	s := w.Chat(waggle.SessionOptions{})
//	defer s.Close()
//	answer, err := s.Ask(ctx, "What do bees say?")
//
// A [Session] outlives its connections: on any gateway it resumes after the last event that it
// got, so that each event arrives once and in order, and each message counts once. A program that
// does not read its events stops the connection's reader; no event is lost.
//
// Errors of the server are of type *[Error], with a code of the error catalogue. The comments of the methods that make requests list
// their codes, without those that any request may get: UNAUTHENTICATED, CREDENTIALS_EXPIRED, FORBIDDEN, RATE_LIMITED, QUOTA_EXCEEDED,
// INVALID_FIELD, MESSAGE_TOO_BIG, INTERNAL, BUS_UNAVAILABLE, OVERLOADED and DRAINING. The subpackages
// orbit, myagent and team are the same clients frame by frame, for programs that need every detail
// of a dialect.
package waggle
