// Package swarm connects Go programs to Waggle over the Agent Swarm Protocol.
//
// There are three roles. A [Client] gives tasks to agents and hears how they get on. An
// [Agent] does tasks. A [Service] runs tools that agents call.
//
//	client, err := swarm.Dial(ctx, swarm.ClientOptions{Options: swarm.Options{URL: "ws://127.0.0.1:9000"}})
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	result, err := client.SendTask(ctx, swarm.NewTask{AgentName: "Echo", Data: "hello"})
//
// Every connection is made again when it breaks, with a growing pause and jitter. A
// client comes back as the same client and is told what it has missed, in order. An
// agent comes back with the same id and keeps the tasks that it has, if it is back
// before the server gives them to others. What was asked for meanwhile waits; what
// cannot be known to have been carried out fails with [ErrInterrupted].
//
// All methods may be called from any goroutine, and return early with the error of
// their context. Errors of the server are of type *[Error].
package swarm
