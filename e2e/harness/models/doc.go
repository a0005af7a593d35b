// Package models scripts the models of the members of a team.
package models
