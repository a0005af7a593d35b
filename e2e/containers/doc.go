// Package containers tests the images waggle and waggle-nats as containers that it starts one by one: a cluster whose
// NATS servers freeze, lose their network and die. "make compose-test" builds the images and runs it.
package containers
