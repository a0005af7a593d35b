// Package swarm connects Go programs to Waggle over the Agent Swarm Protocol.
//
// It has three roles. A [Client] gives tasks to agents and follows their progress. An [Agent] does
// tasks. A [Service] runs tools that agents call.
//
//	client, err := swarm.Dial(ctx, swarm.ClientOptions{Options: swarm.Options{URL: "ws://127.0.0.1:9000"}})
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	result, err := client.SendTask(ctx, swarm.NewTask{AgentName: "Echo", Data: "hello"})
//
// A broken connection is made again, with a growing pause and jitter. A client resumes as the same
// client and gets the events that it missed, in order. An agent keeps its id, and keeps its tasks
// if it reconnects before the server assigns them to other agents. Requests wait meanwhile; a
// request that may or may not have been carried out fails with [ErrInterrupted].
//
// All methods may be called from any goroutine, and return early with the error of their context.
// Errors of the server are of type *[Error].
package swarm
