package upstream

import (
	"strings"

	"github.com/waggle-dev/waggle/services/model"
)

// maxText bounds the text of one answer, and its reasoning: 128k tokens of 4 bytes, sixteen times over.
const maxText = 8 << 20

// Sink receives the text and the reasoning of one answer.
type Sink struct {
	to              model.Listener
	text, reasoning strings.Builder
	said, thought   joiner
	tags            tags
	err             error // of the listener
}

// Text passes a piece of the answer on. After an error the attempt has to end with it.
func (s *Sink) Text(piece string) error { return s.Piece(Piece{Text: []byte(piece)}) }

// Piece passes on what a piece has of the answer and of the reasoning.
func (s *Sink) Piece(p Piece) error {
	if err := s.Think(p.Thought); err != nil {
		return err
	}
	return s.split(s.said.add(p.Text))
}

// Think passes a piece of the reasoning on.
func (s *Sink) Think(piece []byte) error { return s.think(s.thought.add(piece)) }

// Said reports whether a part of the answer or of the reasoning was passed on.
func (s *Sink) Said() bool { return s.text.Len() > 0 || s.reasoning.Len() > 0 }

// SoFar returns the text that was passed on.
func (s *Sink) SoFar() string { return s.text.String() }

// end passes on what was held back for a further piece.
func (s *Sink) end() error {
	if err := s.think(s.thought.rest()); err != nil {
		return err
	}
	if err := s.split(s.said.rest()); err != nil {
		return err
	}
	text, thought := s.tags.rest()
	if err := s.think(thought); err != nil {
		return err
	}
	return s.say(text)
}

// split takes a text in which reasoning may stand between tags.
func (s *Sink) split(piece string) error {
	text, thought := s.tags.split(piece)
	if err := s.think(thought); err != nil {
		return err
	}
	return s.say(text)
}

func (s *Sink) say(piece string) error { return s.pass(&s.text, s.to.Say, piece) }

func (s *Sink) think(piece string) error { return s.pass(&s.reasoning, s.to.Think, piece) }

func (s *Sink) pass(all *strings.Builder, on func(string) error, piece string) error {
	if piece == "" {
		return nil
	}
	if all.Len()+len(piece) > maxText {
		return errTooLong
	}
	all.WriteString(piece)
	s.err = on(piece)
	return s.err
}

// tags finds the reasoning of models whose server leaves it in the text: between <think> and </think>, at the beginning only.
type tags struct {
	state tagState
	held  string // may be the beginning of a tag
}

type tagState int

const (
	tagStart  tagState = iota // nothing but white space so far
	tagInside                 // after <think>
	tagBehind                 // after </think>: white space is left out
	tagText                   // all else is text
)

const openTag, closeTag = "<think>", "</think>"

// split returns the parts of a piece that are text and reasoning. The reasoning comes before the text.
func (t *tags) split(piece string) (text, thought string) {
	if t.state == tagText || piece == "" {
		return piece, ""
	}
	rest := t.held + piece
	t.held = ""
	if t.state == tagStart {
		begins := strings.TrimLeft(rest, " \t\r\n")
		switch {
		case strings.HasPrefix(begins, openTag):
			t.state, rest = tagInside, begins[len(openTag):]
		case strings.HasPrefix(openTag, begins):
			t.held = rest
			return "", ""
		default:
			t.state = tagText
			return rest, ""
		}
	}
	if t.state == tagInside {
		before, after, closed := strings.Cut(rest, closeTag)
		if !closed {
			n := len(rest) - overlap(rest, closeTag)
			t.held = rest[n:]
			return "", rest[:n]
		}
		t.state, thought, rest = tagBehind, before, after
	}
	if rest = strings.TrimLeft(rest, "\r\n"); rest != "" {
		t.state = tagText
	}
	return rest, thought
}

// rest returns what was held back.
func (t *tags) rest() (text, thought string) {
	held := t.held
	t.held = ""
	if t.state == tagInside {
		return "", held
	}
	return held, ""
}

// overlap returns the length of the longest end of s that begins tag.
func overlap(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasPrefix(tag, s[len(s)-n:]) {
			return n
		}
	}
	return 0
}
