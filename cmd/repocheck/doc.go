// Package repocheck tests the repository itself: the imports of packages, the place that builds
// subjects, the README's commands, and the counts of the build's own tools. It has no code of its own.
package repocheck
