package demo

import (
	"regexp"
	"strings"
)

var (
	reads = []*regexp.Regexp{
		re(`(?:read|show|open|print|display|cat|view|output|dump)(?: me| us)?(?: out)?(?: again)?(?: the)?(?: whole| full| entire)?(?: contents?| text)?(?: of| in| from)? (.+?)(?: to me| aloud| out)?`),
		re(`what(?:'s|’s| is| are| does| do| did)? (.+?) (?:say|says|said|contain|contains|hold|holds|read|tell|tell me|tell us|have in it|have inside)(?: exactly)?`),
		re(`what(?:'s|’s| is| are) (?:written |stored |there |the text )?(?:in|inside)(?: of)? (.+)`),
		re(`(?:what(?:'s|’s| is| are) )?(?:the )?(?:contents?|text) (?:of|in) (.+)`),
		re(`what (.+?) (?:says|contains|holds)`),
		re(`(?:have |take )?a look at (.+)`), re(`look at (.+)`), re(`(?:what|how) about (.+)`),
	}
	summaries = re(`(?:summari[sz]e|sum up|explain|translate|rewrite|improve|analy[sz]e|(?:what(?:'s|’s| is) )?(?:the )?summary of) (.+)`)

	notAWord = regexp.MustCompile(`(?i)^` + leadFile + `$`)
)

func parseRead(c *clause) *task {
	if m := match(c.raw, summaries); m != nil {
		if files := c.names(m[0], false); files != nil {
			return readTask(files, "I am no language model, so I can only show what is there.\n\n")
		}
	}
	for i, r := range reads {
		m := match(c.raw, r)
		if m == nil || notAWord.MatchString(m[0]+" ") {
			continue
		}
		// After a verb such as "read" one word is a name, whatever it looks like;
		// after "what is in" it is a folder.
		loose := i == 0 && !strings.HasPrefix(strings.ToLower(c.raw), "show") || i == 1
		if files := c.names(m[0], loose); files != nil {
			return readTask(files, "")
		}
	}
	// A name by itself is a request to see it.
	if n, ok := c.name(c.raw, false); ok && looksLikeFile(n) {
		c.file = n
		return readTask([]string{n}, "")
	}
	return nil
}

const (
	noun  = `(?:files?|folders?|director(?:y|ies)|documents?|notes|contents?|entries)`
	where = `(?:the |my |this |your |our |current )*`
)

var (
	lists = []*regexp.Regexp{
		re(`(?:list|ls|dir|show|display|enumerate|see|print)(?: me| us)?(?: all| every| each)?(?: of)? ?` + where + noun + `(?: and ` + noun + `)?( .+)?`),
		re(`(?:what|which)(?: are| is)?(?: all)? ?` + where + noun + `(?: and ` + noun + `)?(?: do (?:i|we|you) have| (?:are|is)(?: there)?| exist| can you (?:see|read))?( .+)?`),
		re(`(?:are|is) there (?:any |some |a )?` + noun + `( .+)?`),
		re(`(?:do|have) (?:i|we|you)(?: have| got)? (?:any |some )?` + noun + `( .+)?`),
		re(`what(?:'s|’s| is| do (?:i|we) have)(?: there)?( (?:in|inside) .+| here)`),
		re(`(?:list|ls|dir|show|display)( (?:in )?` + where + `(?:workspace|folder|directory)| here)?`),
		re(`(?:all |every )?(?:of )?` + where + noun + `( .+)?`),
	}
	listsFolder = []*regexp.Regexp{
		re(`(?:list|ls|dir) ` + where + `(?:folder |directory )?(\S+?)/?(?: folder| directory)?`),
		re(`(?:show|display|open) ` + where + `(?:folder |directory )(\S+?)/?`),
		re(`(?:show|display|open) ` + where + `(\S+?)/?(?: folder| directory)`),
	}
	counts = re(`how many (files|folders|directories|documents|files and folders)(?: are| do (?:i|we|you) have| exist| is)?(?: there)?( .+)?`)
	exists = []*regexp.Regexp{
		re(`(?:is|are) there (?:a |any |some )?(?:file |document )?(?:called |named )?(\S+)(?: ` + inWorkspace + `)?`),
		re(`(?:does|do) ` + leadFile + `(\S+) exist(?: ` + inWorkspace + `)?`),
		re(`(?:do|have) (?:i|we|you)(?: have| got) (?:a |any |the )?(?:file |document )?(?:called |named )?(\S+)(?: ` + inWorkspace + `)?`),
	}
	deep = regexp.MustCompile(`(?i)\b(?:recursive(?:ly)?|all (?:the |my )?files|everything|sub-?folders|with (?:all )?folders|tree)\b`)

	// inFolder takes a place apart: "in the workspace", "in the docs folder", "of docs".
	inFolder = re(` ?(?:(?:are|is) )?(?:there )?(?:(?:in|inside|within|under|of|from|at|does|do) )*` + where +
		`(?:(workspace|here|there|it|have|root|folder|directory)|(?:folder |directory )?(?:called |named )?(\S+?)/?(?: folder| directory)?)` +
		`(?: folder| directory)?(?: right now| at the moment| recursively| please| have| contain| there)*`)
)

const inWorkspace = `(?:in|inside) (?:the |my |this )?(?:workspace|folder|directory)`

func parseExists(c *clause) *task {
	m := match(c.raw, exists...)
	if m == nil {
		return nil
	}
	n, ok := c.name(m[0], false)
	if !ok || strings.Contains(n, "*") {
		return nil
	}
	c.file = n
	return existsTask(n)
}

func parseList(c *clause) *task {
	if m := match(c.raw, counts); m != nil {
		if folder, ok := folderOf(m[1]); ok {
			return listTask(folder, deep.MatchString(c.raw), true)
		}
	}
	for _, r := range lists {
		if m := match(c.raw, r); m != nil {
			if folder, ok := folderOf(m[0]); ok {
				return listTask(folder, deep.MatchString(c.raw), false)
			}
		}
	}
	if m := match(c.raw, listsFolder...); m != nil {
		if n := trimName(m[0]); n != "" && !notNames.MatchString(n) && !looksLikeFile(n) {
			return listTask(n, false, false)
		}
	}
	return nil
}

// folderOf reads the end of a sentence that says where. The workspace itself is "".
func folderOf(s string) (folder string, ok bool) {
	if s = strings.TrimSpace(deep.ReplaceAllString(s, "")); s == "" {
		return "", true
	}
	m := match(s, inFolder)
	switch {
	case m == nil:
		return "", false
	case m[1] == "":
		return "", true
	}
	n := trimName(m[1])
	return n, n != "" && !notNames.MatchString(n) && !looksLikeFile(n)
}

const ofText = `(?:the |any )*(?:exact )?(?:words?|text|phrase|string|term|lines? with|mentions? of|occurrences? of)? ?`

var (
	searchesIn = []*regexp.Regexp{
		re(`(?:search|grep|scan|look) (?:in |through |inside )?(.+?) for ` + ofText + `(.+)`),
		re(`(?:does|do) (.+?) (?:mention|contain|include|say(?: anything about)?|talk about) ` + ofText + `(.+)`),
	}
	searches = []*regexp.Regexp{
		re(`(?:search|look|scan) for ` + ofText + `(.+?)(?: (?:in|inside|within|across|through) (.+))?`),
		re(`(?:find|grep|search)(?: for| me)? ` + ofText + `(.+?)(?: (?:in|inside|within|across|through) (.+))?`),
		re(`where (?:is|are|do|does|did) (?:i |we |the files? )?(.+?) (?:mentioned|mention|appears?|written|occurs?|used|found|come up)(?: in (.+))?`),
	}
	mentions = re(`(?:which|what|find|list|show|are there|is there)(?: me| all| any| a)*(?: of)?(?: the| my)* ?(?:files?|documents?|notes)(?: in (?:the |my )*workspace)?(?: that| which)? (?:contains?|containing|mentions?|mentioning|has|have|with|includes?|including|talks? about|says?|refers? to) ` + ofText + `(.+)`)
	named    = re(`(?:find|search(?: for)?|list|show|which|what|are there|is there)(?: me)?(?: all| any| a)?(?: of)?(?: the| my)* ?(?:files? (?:are )?(?:named|called|matching|like) (\S+)|(\*?\.?[A-Za-z0-9]+) files)(?: (?:are|exist)(?: there)?)?(?: ` + inWorkspace + `)?`)
	anywhere = re(`(?:all |any |the |my |every |each )*(?:files?|workspace|folders?|documents?|notes|everything|everywhere|them)(?: (?:in|of) (?:the |my )*workspace)?`)
	isFolder = regexp.MustCompile(`(?i)\b(?:folder|directory)\b|/`)
	kind     = regexp.MustCompile(`^\*?\.?(?:md|txt|csv|json|ya?ml|toml|go|py|js|ts|html?|css|sh|log|xml|ini|conf|sql|rs|c|h|java|rb|tex|rst)$`)
)

func parseSearch(c *clause) *task {
	if m := match(c.raw, named); m != nil {
		if m[0] != "" {
			return searchTask("", "", trimName(m[0]))
		}
		if kind.MatchString(strings.ToLower(m[1])) {
			return searchTask("", "", "*."+strings.TrimLeft(strings.ToLower(m[1]), "*."))
		}
	}
	if m := match(c.raw, mentions); m != nil {
		return searchTask(unquote(m[0]), "", "")
	}
	for i, r := range searchesIn {
		m := match(c.raw, r)
		if m == nil {
			continue
		}
		area, ok := c.area(m[0])
		if !ok && i == 0 { // "search docs for milk": a folder
			area, ok = c.name(m[0], true)
		}
		if ok {
			return searchTask(unquote(m[1]), area, "")
		}
	}
	m := match(c.raw, searches...)
	if m == nil || m[0] == "" {
		return nil
	}
	if area, ok := c.area(m[1]); ok {
		return searchTask(unquote(m[0]), area, "")
	}
	if len(m[1]) > 0 && !quoted(m[0]) { // the "in" belongs to what is searched for
		i := strings.LastIndex(c.raw, m[1])
		return searchTask(c.raw[strings.Index(c.raw, m[0]):i+len(m[1])], "", "")
	}
	return nil
}

// area reads where to search: everywhere (""), a folder or a file.
func (c *clause) area(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if s == "" || anywhere.MatchString(s) {
		return "", true
	}
	if n, ok := c.name(leading.ReplaceAllString(s, ""), false); ok {
		c.file = n
		return n, true
	}
	if !isFolder.MatchString(s) {
		return "", false
	}
	return folderOf(s)
}
