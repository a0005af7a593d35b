package repocheck

// cleanPackages are the packages of gateway and e2e whose comments and identifiers follow the rules, as those of all other
// modules do. A package that joins the list stays. The list goes when it holds all packages.
var cleanPackages = []string{
	"e2e",
	"e2e/chaos",
	"e2e/chaos/fault",
	"e2e/chaos/load",
	"e2e/chaos/report",
	"e2e/chaos/site",
	"e2e/chaos/verify",
	"e2e/compose",
	"e2e/containers",
	"e2e/contract",
	"e2e/flows",
	"e2e/harness/client",
	"e2e/harness/models",
	"e2e/harness/original",
	"e2e/harness/pages",
	"e2e/harness/process",
	"e2e/harness/proof",
	"e2e/harness/verify",
	"e2e/kube/chart",
	"e2e/kube/crd",
	"e2e/kube/plane",
	"e2e/monitor",
	"e2e/power",
}
