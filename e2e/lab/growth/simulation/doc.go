// Package simulation predicts how an installation behaves under a load: how many answers it gives, after how long, which part
// limits it, what it stores and what it costs. It plays discrete events in a clock of its own, from measured figures, and
// draws all chance from one seed: a run depends on its arguments only.
package simulation
