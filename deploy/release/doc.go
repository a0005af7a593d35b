// Command release makes the parts of a release that other tools do not make the same way twice: equal commits give equal
// bytes. scripts/release.sh calls it.
//
//	release version                                   print the version, which the changelog and every package have
//	release set VERSION                               write the version into every package
//	release notes                                     print the changelog of the version
//	release archive -time T OUT NAME=FILE...          write a .tar.gz of files
//	release roots                                     print root certificates for images without a base
//	release image -time T -target STAGE -out FILE ... make the image of a stage of the Dockerfile for each architecture
//	release chart -time T -out FILE -oci FILE         package the Helm chart
//	release modules -out DIR                          write the Go modules for programs of others as a module proxy
//	release formula -dist DIR                         print the Homebrew formula
//	release key                                       print a new signing key
//	release public -key FILE                          print the public key, as minisign has it
//	release install -key FILE                         print install.sh with the public key
//	release sign -key FILE FILE                       sign a file: FILE.minisig and FILE.sig
//	release push FILE REFERENCE                       push an image or chart to a registry
//
// It is a module of its own, outside of the workspace: no part of Waggle itself needs a packager.
package main
