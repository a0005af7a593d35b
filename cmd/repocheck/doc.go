// Package repocheck holds the tests that keep the repository itself true: the imports of packages, the place that builds
// subjects, the README's commands, and the counts of the build's own tools. It has no code of its own.
package repocheck
