// Package stream reads logs for the clients of a gateway. A Stream shows one log on one connection: history, then live events, each
// once and in order. It is bounded in bytes: a stream whose transport is full leaves live mode, and reads the log at its own
// pace when the transport has room again. Read reads a part of a log that has an end.
//
// A stream has three parts: the reader, which is a viewer of the log; the shaper, which puts parts of texts together; and the
// projector, which makes messages of entries. The projector of a codec makes each message once for all viewers of the log. A
// projector may instead be a fold, whose messages depend on what came before: it is given each entry once.
//
// A stream knows its connection as a transport.Transport and a Binding, and no more.
package stream
