// Package waggle lets a Go program use a Waggle gateway: chats and planned sessions, the
// questions that they ask, teams of agents, and what the HTTP API knows of them. Agents,
// services and clients of the swarm are in package swarm.
//
//	w, err := waggle.Open(ctx, "ws://127.0.0.1:9000", waggle.Options{Token: key})
//	if err != nil {
//		return err
//	}
//	s := w.Chat(waggle.SessionOptions{})
//	defer s.Close()
//	answer, err := s.Ask(ctx, "What do bees say?")
//
// A [Session] outlives its connections: it comes back on any gateway behind the last
// event that it has seen, so that each event is told once and in order, and what was sent
// counts once. Its events stop the reader of the connection while nobody takes them;
// nothing is lost.
//
// Errors of the server are of type *[Error], with a code of the error catalogue. The
// subpackages orbit, myagent and team are the same clients frame by frame, for programs
// that need every detail of a dialect.
package waggle
