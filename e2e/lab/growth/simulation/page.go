package simulation

import (
	"fmt"
	"strings"
)

// Marks of the parts of the page that the simulation writes.
const (
	begin = "<!-- simulation: "
	ends  = ", written by \"make generate\" -->\n"
	end   = "<!-- end -->"
)

// Fill writes the tables of the figures between their marks on the page.
func (f Figures) Fill(page string) (string, error) {
	tables := map[string]func() string{
		"measured": f.MeasuredTable, "assumed": f.AssumedTable,
		"cell": f.CellTables, "alone": f.AloneTable, "nodes": f.NodeTable, "money": f.MoneyTable, "gather": f.GatherTable,
		"regions": f.RegionTable, "drills": f.DrillTable,
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(page, begin)
		out.WriteString(before)
		if !found {
			break
		}
		name, rest, named := strings.Cut(rest, ends)
		_, after, ended := strings.Cut(rest, end)
		table, known := tables[name]
		if !named || !ended || !known {
			return "", fmt.Errorf("the page has no end or no table for %q", name)
		}
		delete(tables, name)
		out.WriteString(begin + name + ends + table() + end)
		page = after
	}
	for name := range tables {
		return "", fmt.Errorf("the page has no place for the table %q", name)
	}
	return out.String(), nil
}
