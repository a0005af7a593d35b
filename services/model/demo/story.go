package demo

import (
	"context"
	"time"
)

// The story is told at the speed at which language models answer, so that people can watch it come, stop it, and kill the
// server in the middle of it.
const (
	storyPause = 70 * time.Millisecond // after each word

	story = `A honey bee that finds a field of flowers does not keep it to herself. She flies home, and on the dark comb she dances.

She runs straight ahead and shakes her body from side to side. Then she turns right, walks back in a half circle, and runs the same line again. The next time she turns left. People who watched it called it the waggle dance.

The line says where to fly. On the comb, up stands for the sun. A run straight up means: fly towards the sun. A run sixty degrees to the right of it means: keep the sun sixty degrees on your left. As the sun moves across the sky, a bee that dances for a long time slowly turns her line with it.

The length of the run says how far. One second of shaking is about one kilometre. And the more often she repeats it, the better the place is: a bee that found little dances little, and soon stops.

The others see nothing of this, for it is dark in there. They crowd around her, feel the dance with their antennae, and taste what she brought. Then they fly out, each by herself, and most of them find the field.

Nobody is in charge. If one dancer is lost on the way, the message is not: other bees have followed it, and go on dancing. Karl von Frisch worked all this out with glass hives, paint and patience, and received a Nobel Prize for it in 1973.`
)

// linger waits after a word of the story, until the context ends.
func linger(ctx context.Context) {
	select {
	case <-time.After(storyPause):
	case <-ctx.Done():
	}
}
