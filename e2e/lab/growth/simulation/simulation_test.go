package simulation

import (
	"math"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// small is a cell whose parts are all busy.
func small(users int) Config {
	f := Current()
	l := f.LoadOf(users)
	l.Think, l.Pieces, l.FirstToken, l.PieceEvery, l.Tenants = 5*time.Second, 20, 100*time.Millisecond, 5*time.Millisecond, 20
	return Config{Seed: 7, Load: l, Costs: f.CostsOf(3), Warm: 5 * time.Second, Length: 20 * time.Second, Shape: Shape{
		Gateways: 2, GatewayCores: 2, Services: 2, ServiceCores: 2, Workers: 2, WorkerCores: 2, NATS: 3, NATSCores: 2, Copies: 3, Shards: 16, Jobs: 64,
	}}
}

func TestARunDependsOnItsArgumentsOnly(t *testing.T) {
	c := small(500)
	first := Run(c)
	require.Greater(t, first.Answers, 500)
	require.Zero(t, first.Failed)
	require.Equal(t, first, Run(c))
	c.Seed++
	require.NotEqual(t, first, Run(c))
}

// queue lets visits arrive at a station by chance, until all have left, and returns the station.
func queue(seed uint64, cores, visits int, rate, service float64) *station {
	e, r := &engine{}, newChance(seed, 0)
	s := newStation(e, cores)
	mean := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	at := time.Duration(0)
	for range visits {
		at += r.exponential(mean(1 / rate))
		e.after(at, func() { s.do(r.exponential(mean(service)), nil) })
	}
	for len(e.heap) > 0 {
		e.run(e.heap[0].at)
	}
	return s
}

// Little's law and the law of utilisation hold in every run that begins and ends empty: L = lambda W and U = lambda S / cores.
// Both sides are counted apart from each other.
func TestLittlesLawHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cores := rapid.IntRange(1, 8).Draw(t, "cores")
		load := rapid.Float64Range(0.05, 1.3).Draw(t, "load") // an overloaded station empties later
		s := queue(rapid.Uint64().Draw(t, "seed"), cores, rapid.IntRange(1, 300).Draw(t, "visits"), load*float64(cores)*10, 0.1)
		length := s.e.now.Seconds()
		u := useOf("station", []*station{s})
		require.InEpsilon(t, u.Rate*u.Stay, u.Present, 1e-6)
		require.InEpsilon(t, u.Rate*u.Service/float64(cores), u.Utilisation, 1e-6)
		require.InEpsilon(t, s.present.Seconds(), u.Present*length, 1e-6)
		require.Zero(t, s.busy+s.waiting())
	})
}

// erlang is the probability that a visit of an M/M/c queue waits.
func erlang(cores int, load float64) float64 {
	a, sum, term := load*float64(cores), 0.0, 1.0
	for k := range cores {
		sum += term
		term *= a / float64(k+1)
	}
	return term / (1 - load) / (sum + term/(1-load))
}

// The station behaves as the closed forms of M/M/1 and M/M/c say.
func TestStationsFollowTheClosedForms(t *testing.T) {
	const service = 0.1
	for _, cores := range []int{1, 2, 4, 16} {
		for _, load := range []float64{0.3, 0.6, 0.8} {
			const batches = 20
			want := service + erlang(cores, load)*service/(float64(cores)*(1-load))
			means := make([]float64, batches)
			mean, spread := 0.0, 0.0
			for n := range means { // each is a run of its own, so that they do not depend on each other
				s := queue(uint64(n+1), cores, 20_000, load*float64(cores)/service, service)
				means[n] = s.stayed.Seconds() / float64(s.served)
				mean += means[n] / batches
			}
			for _, m := range means {
				spread += (m - mean) * (m - mean) / (batches - 1)
			}
			bound := 3.9 * math.Sqrt(spread/batches) // 99.9 % of Student's distribution with 19 degrees of freedom
			require.InDelta(t, want, mean, bound, "%d cores, load %v", cores, load)
			require.Less(t, bound, want*0.05)
		}
	}
}

// The laws hold for whole installations, too: at each part, and for the users, who think or wait.
func TestLawsHoldInInstallations(t *testing.T) {
	for _, users := range []int{50, 500, 1000} {
		c := small(users)
		c.Length = 40 * time.Second
		r := Run(c)
		for _, u := range r.Parts {
			require.InEpsilon(t, u.Rate*u.Stay, u.Present, 0.03, "%d users: %s", users, u.Part)
			require.LessOrEqual(t, u.Utilisation, 1.0000001)
		}
		bound := 4 / math.Sqrt(float64(r.Answers)) // four deviations of so many exponential times
		require.InEpsilon(t, r.Rate*r.Mean.Seconds(), r.Waiting, bound, "%d users", users)
		require.InEpsilon(t, float64(users), r.Rate*(r.Mean+c.Load.Think).Seconds(), bound, "%d users: the law of interactive response times", users)
	}
}

// More cores serve the same visits no later.
func TestMoreCoresServeNoLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, visits := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 200).Draw(t, "visits")
		cores, rate := rapid.IntRange(1, 6).Draw(t, "cores"), rapid.Float64Range(1, 100).Draw(t, "rate")
		few, many := queue(seed, cores, visits, rate, 0.1), queue(seed, cores+1, visits, rate, 0.1)
		require.LessOrEqual(t, many.e.now, few.e.now)
		require.LessOrEqual(t, many.stayed, few.stayed)
	})
}

// More cores never give fewer answers: by 3 % at most, because answers take other turns.
func TestMoreCoresGiveNoFewerAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := small(rapid.IntRange(10, 100).Draw(t, "users"))
		c.Seed, c.Warm, c.Length, c.Load.Think, c.Load.Pieces = rapid.Uint64().Draw(t, "seed"), time.Second, 2*time.Second, 300*time.Millisecond, 5
		more := c
		for _, cores := range []*int{&more.Shape.GatewayCores, &more.Shape.ServiceCores, &more.Shape.WorkerCores, &more.Shape.NATSCores} {
			*cores += rapid.IntRange(0, 2).Draw(t, "cores")
		}
		few, many := Run(c), Run(more)
		require.GreaterOrEqual(t, float64(many.Answers), float64(few.Answers)*0.97-3)
	})
}

// A lost cell costs its own tenants answers, and the others nothing at all.
func TestALostCellHarmsItsTenantsOnly(t *testing.T) {
	c := small(600)
	c.Cells = 4
	whole := Run(c)
	c.Losses = []Loss{{Cell: 2, At: 10 * time.Second, Back: 17 * time.Second}}
	hit := Run(c)
	require.Positive(t, hit.Failed)
	for n, got := range hit.Tenants {
		if want := whole.Tenants[n]; want.Cell != 2 {
			require.Equal(t, want, got)
		} else if got.Users > 0 {
			require.Less(t, got.Answered, want.Answered, "tenant %d", n)
			require.Positive(t, got.Failed)
		}
	}
}

// A tenant that moves gets all its answers, some of them later, and those of the others stay as they are.
func TestAMovedTenantLosesNoAnswer(t *testing.T) {
	c := small(600)
	c.Cells, c.MaxAsks, c.Length = 2, 3, 5*time.Minute
	c.Warm = 0
	c.Moves = []Move{{Tenant: 0, To: 1, At: 4 * time.Second, Copy: 8 * time.Second}}
	r := Run(c)
	require.Equal(t, 1, r.Tenants[0].Cell)
	require.Zero(t, r.Failed)
	require.Equal(t, 3*600, r.Answers)
	require.Greater(t, r.Whole.P99, 6*time.Second)
}

// Users of another region wait for the line, and nothing else.
func TestRemoteUsersPayForTheLine(t *testing.T) {
	c := small(100)
	near := Run(c)
	c.Load.Remote, c.Load.RemoteLine = 1, 150*time.Millisecond
	far := Run(c)
	require.InDelta(t, 150, (far.FirstOver.P50-near.FirstOver.P50).Seconds()*1000, 5)
}

// Pieces that wait for each other need fewer appends.
func TestLingeringGathersPieces(t *testing.T) {
	c := small(500)
	at := Run(c)
	c.Shape.Linger = 50 * time.Millisecond
	gathered := Run(c)
	require.Less(t, gathered.Appends/gathered.Rate, at.Appends/at.Rate*0.7)
	require.InEpsilon(t, gathered.FirstOver.P50.Seconds(), at.FirstOver.P50.Seconds(), 0.5, "the first piece does not linger")
}

// The calibrated model's single user sees what the real one saw, whether the work or the waits take most of the time.
func TestTheModelMeetsItsObservation(t *testing.T) {
	for _, o := range []Observation{
		{CPU: 3 * time.Millisecond, Latency: 8 * time.Millisecond, Think: 100 * time.Millisecond, Cores: 2},
		{CPU: 12 * time.Millisecond, Latency: 6 * time.Millisecond, Think: 100 * time.Millisecond, Cores: 2},
	} {
		m := Calibrate(o)
		r := m.Predict(1)
		require.InEpsilon(t, o.Latency.Seconds(), r.Whole.P50.Seconds(), 0.1)
		require.InEpsilon(t, o.CPU.Seconds(), r.Parts[0].Utilisation*float64(o.Cores)/r.Rate, 0.1)
		many := m.Predict(100)
		require.InEpsilon(t, float64(o.Cores)/o.CPU.Seconds(), many.Rate, 0.1, "many users get what the cores can do")
	}
}

// The simulation shows the demand of which the sizes are made.
func TestDemandIsWhatTheSimulationShows(t *testing.T) {
	f := Current()
	const users = 3000
	d := f.DemandOf(users, copiesOfStreams, 0)
	shape := f.ShapeFor(d)
	r := Run(Config{Seed: 3, Load: f.LoadOf(users), Costs: f.CostsOf(copiesOfStreams), Shape: shape, Warm: 20 * time.Second, Length: 100 * time.Second})
	require.InEpsilon(t, d.Rate, r.Rate, 0.15)
	require.InEpsilon(t, d.Appends, r.Appends, 0.15)
	for _, u := range r.Parts {
		switch u.Part {
		case partNATS:
			require.InEpsilon(t, d.NATS, u.Rate*u.Service, 0.2)
		case partGateway:
			require.InEpsilon(t, d.Gateway, u.Rate*u.Service, 0.2)
		case partService:
			require.InEpsilon(t, d.Services, u.Rate*u.Service, 0.2)
		case partWorker:
			require.InEpsilon(t, d.Workers, u.Rate*u.Service, 0.2)
		}
	}
}

func TestSharesOfTenants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "tenants")
		largest := max(rapid.Float64Range(0.01, 1).Draw(t, "largest"), 1/float64(n))
		shares := Zipf(n, rapid.Float64Range(0, 2).Draw(t, "skew"), largest)
		sum := 0.0
		for k, s := range shares {
			sum += s
			require.LessOrEqual(t, s, largest*1.000001)
			require.True(t, k == 0 || s <= shares[k-1]*1.000001)
		}
		require.InEpsilon(t, 1, sum, 1e-9)
	})
}

// A directory that puts each tenant into the emptiest cell fills cells evenly, if no tenant is larger than half a cell.
func TestCellsFillEvenly(t *testing.T) {
	const users, cells = 1_000_000, 50
	sizes := spread(Load{Users: users, Tenants: 10_000, Skew: 1, Largest: 0.5 / cells})
	sums := make([]int, cells)
	for n, c := range Place(sizes, cells) {
		sums[c] += sizes[n]
	}
	for _, sum := range sums {
		require.InEpsilon(t, users/cells, sum, 0.01)
	}
}

// The page has the tables of these figures.
func TestThePageIsCurrent(t *testing.T) {
	const page = "../../../../docs/SCALE.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	filled, err := Current().Fill(string(text))
	require.NoError(t, err)
	require.Equal(t, filled, string(text), `run "make generate"`)
}

func TestFillRefusesOtherPages(t *testing.T) {
	for _, page := range []string{"no table", begin + "unknown" + ends + end, begin + "cell" + ends} {
		_, err := Current().Fill(page)
		require.Error(t, err)
	}
}

// The page shows each figure of either kind.
func TestTheTablesShowEachFigure(t *testing.T) {
	f := Current()
	tables := map[string]string{measured: f.MeasuredTable(), assumed: f.AssumedTable()}
	for _, field := range reflect.ValueOf(f).Fields() {
		one, ok := field.Interface().(Figure)
		require.True(t, ok)
		require.Contains(t, tables[one.Kind], "| "+one.String()+" |", one.Name)
	}
}
