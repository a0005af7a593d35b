// Package link keeps a WebSocket to a server that may restart or disappear: it dials, detects a
// dead connection, reconnects with growing pauses, resumes at the position of the last frame, and
// repeats frames that the server may not have received.
//
// A [Link] knows no protocol. A [Protocol] tells it how to read a frame, which position a frame
// has in its log and how a new connection resumes there. Every frame of a log reaches
// Protocol.Take once and in order, however often the connection breaks; a frame that was
// sent with [Link.Send] is sent on each new connection until a frame of the server
// settles it, with the same bytes or at least the same id, so that the server can tell a
// repetition.
//
// All queues have a bound. A connection queues a few frames for a slow socket, and its
// senders wait for room. Sends that the server has not settled wait in a list; when it is
// full, Send fails with [ErrFull]. A frame of the server is read only after Take has
// returned from the one before: a slow reader slows the server down and loses nothing.
package link
