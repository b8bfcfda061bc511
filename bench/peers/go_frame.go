// SPDX-License-Identifier: MIT

// What runner.h is for C. All works with goroutines are one program.
//
// Go has its default settings: its collector runs, and it preempts a goroutine that does not yield.
// GOMAXPROCS is the number of workers.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"time"
)

var (
	work    string
	workers int
	quick   bool
)

// Each file adds its works: the name, the maximum of workers (0: any number), and the function.
type workKind struct {
	most int
	run  func()
}

var works = map[string]workKind{}

func pick(inQuick, inFull int) int {
	if quick {
		return inQuick
	}
	return inFull
}

func need(right bool, what string) {
	if !right {
		fmt.Fprintf(os.Stderr, "Go, %s: %s\n", work, what)
		os.Exit(1)
	}
}

func say(metric, unit string, value float64) { sayAs("Go", metric, unit, value) }

// For a work that is done in more than one way.
func sayAs(system, metric, unit string, value float64) {
	fmt.Printf("{\"work\":%q,\"system\":%q,\"version\":%q,\"workers\":%d,"+
		"\"metric\":%q,\"unit\":%q,\"value\":%.3f}\n",
		work, system, strings.TrimPrefix(runtime.Version(), "go"), workers, metric, unit, value)
}

// Time since the program began, in nanoseconds.
var begun = time.Now()

func now() int64 { return int64(time.Since(begun)) }

// Runs some turns. A short first one warms up and is not reported.
func turns(metric, unit string, once func() float64) {
	enough := time.Duration(pick(50, 300)) * time.Millisecond
	start := time.Now()
	value := once()
	if time.Since(start) > enough {
		say(metric, unit, value)
		return
	}
	start = time.Now()
	for turn := 0; turn < 5; turn++ {
		say(metric, unit, once())
		if time.Since(start) > enough {
			return
		}
	}
}

// Sorts the values.
func percentile(values []int64, percent int) float64 {
	sort.Slice(values, func(i, k int) bool { return values[i] < values[k] })
	return float64(values[(len(values)-1)*percent/100])
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "works" {
		for name, kind := range works {
			fmt.Println(name, kind.most)
		}
		return
	}
	if len(os.Args) == 5 && os.Args[1] == "run" && works[os.Args[2]].run != nil {
		work = os.Args[2]
		workers, _ = strconv.Atoi(os.Args[3])
		quick = os.Args[4] == "quick"
		runtime.GOMAXPROCS(workers)
		works[work].run()
		return
	}
	fmt.Fprintln(os.Stderr, "usage: works | run WORK WORKERS full|quick")
	os.Exit(2)
}
