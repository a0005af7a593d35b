// Package proof names the test that shows each message of a protocol, and checks that the test does. Every frame that it
// is shown has to fit its schema.
package proof
