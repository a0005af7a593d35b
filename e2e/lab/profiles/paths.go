package main

// path is a busy path. One with a benchmark is measured in the tests of the gateway, the other in "waggle up".
type path struct {
	title, about    string
	benchmark, time string
	unit            string // of its figure
}

var paths = []path{
	{"As fast as the sockets take them", "Events of one log to each of 1,000 sockets (`BenchmarkFanOut`).", "BenchmarkFanOut/gateway", "3000x", "ns/delivery"},
	{"Many logs", "An append to each of 1,000 logs, and its frame to a viewer (`BenchmarkLogs`).", "BenchmarkLogs$/gateway$", "5s", "cpu-µs/event"},
	{"Missed events from the log", "1,000 missed events from the log (`BenchmarkReplay`).", "BenchmarkReplay/1000_in_the_log", "5s", "cpu-ms/replay"},
	{"Missed events from memory", "500 missed events from memory (`BenchmarkReplay`).", "BenchmarkReplay/500_in_memory", "5s", "cpu-ms/replay"},
	{"Answers", "Answers of one line, to eight chats.", "", "", ""},
}
