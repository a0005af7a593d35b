// Package stream shows one log on one connection: history, then live events, each once
// and in order, as messages that all viewers of the log in one variant share. It is
// bounded in bytes: a stream whose transport is full leaves live mode, and reads the log at
// its own pace when the transport has room again.
//
// A stream knows its connection as a transport.Transport and a Binding, and no more.
package stream
