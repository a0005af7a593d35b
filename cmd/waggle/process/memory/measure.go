package memory

import "runtime/metrics"

// allocated returns the bytes that the process has allocated since its start.
func allocated() uint64 { return measured("/gc/heap/allocs:bytes") }

// liveMemory returns the bytes that the last collection has found in use.
func liveMemory() uint64 { return measured("/gc/heap/live:bytes") }

func measured(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
