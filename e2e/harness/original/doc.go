// Package original shows teams as the web client of the protocol's original does.
package original
