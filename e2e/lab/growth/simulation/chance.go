package simulation

import (
	"math"
	"math/rand/v2"
	"time"
)

// chance is a source of random numbers of its own for each user, so that the others draw the same when one is lost.
type chance struct{ *rand.Rand }

func newChance(seed, n uint64) chance { return chance{rand.New(rand.NewPCG(seed, n))} } //nolint:gosec // a simulation repeats

// exponential draws a time with the mean.
func (c chance) exponential(mean time.Duration) time.Duration {
	return time.Duration(c.ExpFloat64() * float64(mean))
}

// logNormal draws a time with the median; sigma is the deviation of its logarithm.
func (c chance) logNormal(median time.Duration, sigma float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(sigma*c.NormFloat64()))
}

// Zipf returns the shares of n, the largest first: the k-th is 1/k^s of the first, and none is larger than the largest share.
// The rest of a share that is too large is spread over the others.
func Zipf(n int, s, largest float64) []float64 {
	out, rest := make([]float64, n), make([]float64, n+1) // rest: the sum of a share and those after it
	for k := n - 1; k >= 0; k-- {
		out[k] = math.Pow(float64(k+1), -s)
		rest[k] = rest[k+1] + out[k]
	}
	cut, left := 0, 1.0
	for cut < n-1 && out[cut]/rest[cut]*left > largest {
		out[cut] = largest
		left -= largest
		cut++
	}
	scale := left / rest[cut]
	for k := cut; k < n; k++ {
		out[k] *= scale
	}
	return out
}
