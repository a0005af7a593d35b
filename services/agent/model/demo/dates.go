package demo

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	aDate     = `(.+?)`
	spanUnit  = `(days?|weeks?|months?|years?)`
	maxSpan   = 1_000_000 // days that are added: far beyond any calendar anybody uses
	hoursADay = 24
)

var (
	asksToday = re(`(?:what(?:'s|’s| is| was| will be)? )?(?:the )?(?:current |exact )?(?:day|date|weekday|day of the week)?(?: of)? ?(?:is it |it is |is |was |will be )?(?:on )?(today|tomorrow|yesterday|now)?(?:'s|’s)?(?: date| day)?(?: is it)?(?: it is)?`)
	mustAsk   = regexp.MustCompile(`(?i)\b(?:today|tomorrow|yesterday|date|day)\b`)
	asksTime  = re(`(?:what(?:'s|’s| is)? )?(?:the )?(?:current |exact )?time(?: is it)?(?: now| is it now)?|what time it is`)
	weekdays  = []*regexp.Regexp{
		re(`(?:what|which)(?: is| was| will be)?(?: the)? ?(?:date|day(?: of the week)?|week ?day)(?: of the week)?(?: is| was| will| does| did| do)?(?: be)?(?: on)? ` + aDate + `(?: fall| be)?(?: on)?`),
		re(`(?:on )?(?:what|which) (?:day(?: of the week)?|week ?day) (?:is|was|will|does|did) ` + aDate + `(?: fall| be)?(?: on)?`),
		re(`(?:the )?(?:day of the week|week ?day) (?:of|for|on) ` + aDate),
		re(`(?:what|when)(?:'s|’s| is)(?: the date)?(?: of| on)? ` + aDate),
		re(`(?:the )?date of ` + aDate),
	}
	betweens = []*regexp.Regexp{
		re(`(?:how many|how much|(?:what is )?the number of|number of|count the)? ?` + spanUnit + `?(?: are| is)?(?: there)? ?(?:between|from) ` + aDate + ` (?:and|to|until|till) ` + aDate),
		re(`(?:how (?:many|long)|what is the) (?:time |distance )?` + spanUnit + `?(?: is it| are there)? ?(?:between|from) ` + aDate + ` (?:and|to|until|till) ` + aDate),
	}
	untils = []*regexp.Regexp{
		re(`(?:how (?:many|long)) ?` + spanUnit + `?(?: is it| are there| are left| left| remain| to go| more)*(?: until| till| to| before| left until) ` + aDate),
		re(spanUnit + ` (?:until|till|to) ` + aDate),
	}
	sinces = []*regexp.Regexp{
		re(`(?:how (?:many|long)) ?` + spanUnit + `?(?: is it| has it been| have passed| ago was| passed| went by)*(?: since)? (?:since )?` + aDate),
		re(spanUnit + ` since ` + aDate),
		re(`how long ago (?:is|was)(x?) ?` + aDate),
	}
	shifts = []*regexp.Regexp{
		re(leadDate + `(\d{1,7}|an?|one|two|three|four|five|six|seven|ten) ` + spanUnit + ` (after|before|from|past|since|ago|hence|later|earlier)(?: ` + aDate + `)?`),
		re(leadDate + `in (\d{1,7}|an?|one|two|three|four|five|six|seven|ten) ` + spanUnit + `( from now| time)?(?: ` + `(x)` + `)?`),
	}
	adds  = re(`(add|subtract|take|count) (\d{1,7}|an?|one|two|three|four|five|six|seven|ten) ` + spanUnit + ` (?:to|from|after|onto) ` + aDate)
	leaps = re(`(?:is|was|will) (?:the year )?(\d{1,4})(?: be)? a leap ?year`)
	dates = re(`(\d{4}-\d{1,2}-\d{1,2}|(?:(?:next|last|this) )?[a-z]{3,6}day|\d{1,2}(?:st|nd|rd|th|\.)? [a-z]{3,9} \d{4}|[a-z]{3,9} \d{1,2},? \d{4})`)
)

const leadDate = `(?:(?:what|which|when)(?:'s|’s| is| was| will)?(?: be)? ?(?:the )?(?:date|day|weekday|day of the week)?(?: is it| will it be| was it| is| will be| was| be)? ?|the date )?`

// parseDate recognises questions about the calendar. All dates are UTC.
func parseDate(c *clause) *task {
	now := c.turn.now
	today := day(now)
	s := c.raw
	if m := match(s, asksToday); m != nil && mustAsk.MatchString(s) {
		return sayDay(today, strings.ToLower(m[0]))
	}
	if asksTime.MatchString(s) {
		return say("It is " + now.Format("15:04:05") + " on " + long(now) + " (UTC).")
	}
	if m := match(s, leaps); m != nil {
		return leap(m[0])
	}
	for _, p := range []func(string, time.Time) *task{parseSpan, parseShift} {
		if k := p(s, today); k != nil {
			return k
		}
	}
	for _, r := range append([]*regexp.Regexp{dates}, weekdays...) {
		m := match(s, r)
		if m == nil {
			continue
		}
		if d, ok := date(m[0], today, 0); ok {
			return say(fmt.Sprintf("%s %s a %s.", iso(d), tense(d, today), d.Weekday()))
		}
		if isoDate.MatchString(m[0]) {
			return say(m[0] + " is not in the calendar.")
		}
	}
	return nil
}

func sayDay(today time.Time, which string) *task {
	switch which {
	case "tomorrow":
		return say("Tomorrow is " + long(today.AddDate(0, 0, 1)) + " (UTC).")
	case "yesterday":
		return say("Yesterday was " + long(today.AddDate(0, 0, -1)) + " (UTC).")
	}
	return say("Today is " + long(today) + " (UTC).")
}

func leap(year string) *task {
	y, err := strconv.Atoi(year)
	if err != nil || y == 0 {
		return nil
	}
	not := ""
	if time.Date(y, time.February, 29, 0, 0, 0, 0, time.UTC).Month() != time.February {
		not = "not "
	}
	return say(fmt.Sprintf("%s is %sa leap year.", year, not))
}

// parseSpan recognises questions for the time between two days.
func parseSpan(s string, today time.Time) *task {
	if m := match(s, betweens...); m != nil {
		a, ok := date(m[1], today, 0)
		b, ok2 := date(m[2], today, 0)
		if ok && ok2 {
			return span(a, b, m[0], fmt.Sprintf("between %s and %s", iso(a), iso(b)))
		}
	}
	if m := match(s, untils...); m != nil {
		if d, ok := date(m[1], today, 1); ok {
			if d.Before(today) {
				return span(d, today, m[0], "since "+iso(d)+", which has passed")
			}
			return span(today, d, m[0], "until "+iso(d))
		}
	}
	if m := match(s, sinces...); m != nil {
		if d, ok := date(m[1], today, -1); ok {
			if d.After(today) {
				return span(today, d, m[0], "until "+iso(d)+", which is still to come")
			}
			return span(d, today, m[0], "since "+iso(d))
		}
	}
	return nil
}

// span says how much time lies between two days, in the unit asked for.
func span(a, b time.Time, unit, what string) *task {
	if b.Before(a) {
		a, b = b, a
	}
	n := int(b.Sub(a).Hours()) / hoursADay
	verb := "are"
	if n == 1 {
		verb = "is"
	}
	answer := fmt.Sprintf("There %s %s %s", verb, plural(n, "day"), what)
	switch strings.TrimSuffix(strings.ToLower(unit), "s") {
	case "week":
		answer += fmt.Sprintf(": %s and %s", plural(n/7, "week"), plural(n%7, "day"))
	case "month", "year":
		months := 0
		for !shift(a, months+1, "month").After(b) {
			months++
		}
		rest := int(b.Sub(shift(a, months, "month")).Hours()) / hoursADay
		answer += fmt.Sprintf(": %s, %s and %s", plural(months/12, "year"), plural(months%12, "month"), plural(rest, "day"))
	}
	return say(answer + ".")
}

// parseShift recognises questions for a day some time away from another.
func parseShift(s string, today time.Time) *task {
	var amount, unit, how, from string
	if m := match(s, adds); m != nil {
		amount, unit, how, from = m[1], m[2], "after", m[3]
		if strings.EqualFold(m[0], "subtract") || strings.EqualFold(m[0], "take") {
			how = "before"
		}
	} else if m := match(s, shifts...); m != nil {
		amount, unit, how, from = m[0], m[1], strings.ToLower(m[2]), m[3]
	} else {
		return nil
	}
	n, ok := amountOf(amount)
	base := today
	if from = strings.TrimSpace(from); from != "" && !strings.EqualFold(from, "now") {
		d, known := date(from, today, 0)
		if !known {
			return nil
		}
		base = d
	}
	if !ok {
		return say(fmt.Sprintf("%s %s is further than I count.", amount, unit))
	}
	word := "after"
	if how == "before" || how == "ago" || how == "earlier" {
		n, word = -n, "before"
	}
	d := shift(base, n, unit)
	return say(fmt.Sprintf("%s %s %s is %s.", plural(max(n, -n), singular(unit)), word, iso(base), long(d)))
}

func amountOf(s string) (int, bool) {
	s = strings.ToLower(s)
	if s == "a" || s == "an" {
		return 1, true
	}
	if d, ok := digitWords[s]; ok {
		s = d
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= maxSpan
}

func singular(unit string) string { return strings.TrimSuffix(strings.ToLower(unit), "s") }

// shift moves a day by n units. A month or year ends where the day does not exist:
// a month after 31 January is the last day of February.
func shift(d time.Time, n int, unit string) time.Time {
	switch singular(unit) {
	case "week":
		return d.AddDate(0, 0, 7*n)
	case "year":
		n *= 12
	case "month":
	default:
		return d.AddDate(0, 0, n)
	}
	first := time.Date(d.Year(), d.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(d.Day(), last)-1)
}

var (
	isoDate   = re(`(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})`)
	dayMonth  = re(`(?:the )?(\d{1,2})(?:st|nd|rd|th|\.)?(?: of)? ([A-Za-z]{3,9})\.?,?(?: (?:of )?(\d{4}))?`)
	monthDay  = re(`([A-Za-z]{3,9})\.? (?:the )?(\d{1,2})(?:st|nd|rd|th)?(?:,? (?:of )?(\d{4}))?`)
	aWeekday  = re(`(?:(next|this|last|coming) )?([A-Za-z]{3,6}day)`)
	feast     = re(`(?:the )?(christmas eve|christmas(?: day)?|new year(?:'s|’s)?(?: day)?|new year(?:'s|’s)? eve|halloween|valentine(?:'s|’s)? day)(?: (?:of |in )?(\d{4}))?`)
	dayPhrase = regexp.MustCompile(`(?i)^(?:the date |on |date )`)
)

// date reads a day. A day without a year is one of this year; with toward 1 the
// next one from today on, and with -1 the last one.
func date(s string, today time.Time, toward int) (time.Time, bool) {
	s = strings.TrimRight(dayPhrase.ReplaceAllString(strings.TrimSpace(s), ""), " .,?!")
	switch strings.ToLower(s) {
	case "today", "now":
		return today, true
	case "tomorrow":
		return today.AddDate(0, 0, 1), true
	case "yesterday":
		return today.AddDate(0, 0, -1), true
	}
	if m := match(s, isoDate); m != nil {
		return civil(m[0], atoi(m[1]), m[2], today, toward)
	}
	if m := match(s, dayMonth); m != nil {
		return civil(m[2], month(m[1]), m[0], today, toward)
	}
	if m := match(s, monthDay); m != nil {
		return civil(m[2], month(m[0]), m[1], today, toward)
	}
	if m := match(s, feast); m != nil {
		return feastDay(strings.ToLower(m[0]), m[1], today, toward)
	}
	if m := match(s, aWeekday); m != nil {
		return weekday(strings.ToLower(m[0]), m[1], today, toward)
	}
	return time.Time{}, false
}

func feastDay(name, year string, today time.Time, toward int) (time.Time, bool) {
	switch {
	case name == "christmas eve":
		return civil(year, 12, "24", today, toward)
	case strings.HasPrefix(name, "christmas"):
		return civil(year, 12, "25", today, toward)
	case name == "halloween":
		return civil(year, 10, "31", today, toward)
	case strings.HasPrefix(name, "valentine"):
		return civil(year, 2, "14", today, toward)
	case strings.HasSuffix(name, "eve"):
		return civil(year, 12, "31", today, toward)
	}
	return civil(year, 1, "1", today, toward)
}

// weekday returns the next such day after today, or with "last" or a negative
// toward the one before.
func weekday(which, name string, today time.Time, toward int) (time.Time, bool) {
	for i := 1; i <= 7; i++ {
		d := today.AddDate(0, 0, i)
		if which == "last" || which == "" && toward < 0 {
			d = today.AddDate(0, 0, -i)
		}
		if strings.EqualFold(d.Weekday().String(), name) {
			return d, true
		}
	}
	return time.Time{}, false
}

// civil returns the day if the calendar has it.
func civil(year string, m int, dayOfMonth string, today time.Time, toward int) (time.Time, bool) {
	y, d := atoi(year), atoi(dayOfMonth)
	open := year == ""
	if open {
		y = today.Year()
	}
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	if y < 1 || m < 1 || m > 12 || t.Day() != d || int(t.Month()) != m {
		return time.Time{}, false
	}
	switch {
	case open && toward > 0 && t.Before(today):
		return civil(strconv.Itoa(y+1), m, dayOfMonth, today, 0)
	case open && toward < 0 && t.After(today):
		return civil(strconv.Itoa(y-1), m, dayOfMonth, today, 0)
	}
	return t, true
}

// month returns the number of a month from its name or the start of it, or 0.
func month(s string) int {
	for m := time.January; m <= time.December; m++ {
		if name := m.String(); len(s) >= 3 && len(s) <= len(name) && strings.EqualFold(name[:len(s)], s) {
			return int(m)
		}
	}
	if strings.EqualFold(s, "sept") {
		return int(time.September)
	}
	return 0
}

// atoi returns the number, or 0, which is none of a calendar nor of a line.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

func day(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

func iso(d time.Time) string  { return d.Format(time.DateOnly) }
func long(d time.Time) string { return d.Format("Monday, 2 January 2006") }

func tense(d, today time.Time) string {
	switch {
	case d.Before(today):
		return "was"
	case d.After(today):
		return "will be"
	}
	return "is"
}
