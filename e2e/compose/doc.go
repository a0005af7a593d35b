// Package compose tests docker-compose.yml with a real engine: the fleet is started as
// its users do, and its containers are killed. `make compose-test` makes the images and
// runs it; it needs the build tag "compose", so that nothing else asks for an engine.
package compose
