// Command supply describes what the programs of Waggle are made of: an SBOM of a binary, and
// the page of modules with their licences. It is a module of its own: nothing that Waggle is
// made of needs a classifier of licences.
//
//	supply sbom -version V -time T BINARY   write the SBOM of a binary to stdout
//	supply page FILE                        write the page of the modules
//	supply notices FILE                     write the licences that a copy of the programs comes with
//
// It has to run in this folder.
package main

//go:generate go run . page ../../docs/MODULES.md
