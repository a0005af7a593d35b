// Speed runs benchmarks of the project in rounds, and writes a page that compares their costs with bare peers: a hub without a log,
// JetStream without Waggle. In each round both sides run one after the other, so that what disturbs a round disturbs both.
// It needs a machine that does nothing else.
package main
