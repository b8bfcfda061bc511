// SPDX-License-Identifier: MIT

// The works of janusrt_channels.c with goroutines; the protocol is that of runner.h.
//
// Timed: pingpong, buffered, mpmc, select, crowd.
// Moves it: the channel's lock, parking and waking, the spinning thread that every wake-up wakes.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	room     = 128
	crowd    = 1000000
	selected = 8
)

var (
	work    string
	workers int
	quick   bool
)

func pick(inQuick, inFull int) int {
	if quick {
		return inQuick
	}
	return inFull
}

func messages() int { return pick(200000, 1000000) }

func need(right bool, what string) {
	if !right {
		fmt.Fprintln(os.Stderr, "Go:", what)
		os.Exit(1)
	}
}

func pingpong() float64 {
	there, back := make(chan int64), make(chan int64)
	var group sync.WaitGroup
	group.Add(2)
	start := time.Now()
	go func() {
		for value := range there {
			back <- value + 1
		}
		group.Done()
	}()
	go func() {
		value := int64(0)
		for i := 0; i < messages(); i++ {
			there <- value
			value = <-back
		}
		need(value == int64(messages()), "an answer is missing")
		close(there)
		group.Done()
	}()
	group.Wait()
	return float64(time.Since(start).Nanoseconds()) / float64(messages())
}

func flow(parties int) float64 {
	channel := make(chan int64, room)
	each := int64(messages() / parties)
	senders, sum := int32(parties), int64(0)
	var group sync.WaitGroup
	group.Add(2 * parties)
	start := time.Now()
	for k := 0; k < parties; k++ {
		go func() {
			own := int64(0)
			for value := range channel {
				own += value
			}
			atomic.AddInt64(&sum, own)
			group.Done()
		}()
		go func() {
			for i := int64(1); i <= each; i++ {
				channel <- i
			}
			if atomic.AddInt32(&senders, -1) == 0 {
				close(channel)
			}
			group.Done()
		}()
	}
	group.Wait()
	spent := time.Since(start)
	need(sum == int64(parties)*(each*(each+1)/2), "a message is missing")
	return float64(spent.Nanoseconds()) / float64(each*int64(parties))
}

func selects() float64 {
	var c [selected]chan int64
	each := messages() / selected
	var group sync.WaitGroup
	group.Add(selected)
	start := time.Now()
	for i := range c {
		c[i] = make(chan int64)
		source := c[i]
		go func() {
			for k := 0; k < each; k++ {
				source <- int64(k)
			}
			group.Done()
		}()
	}
	for i := 0; i < each*selected; i++ {
		select {
		case <-c[0]:
		case <-c[1]:
		case <-c[2]:
		case <-c[3]:
		case <-c[4]:
		case <-c[5]:
		case <-c[6]:
		case <-c[7]:
		}
	}
	group.Wait()
	return float64(time.Since(start).Nanoseconds()) / float64(each*selected)
}

func gather() {
	channel := make(chan int64)
	count := pick(crowd/10, crowd)
	told, standing := int64(0), int64(0)
	var group sync.WaitGroup
	group.Add(count)
	start := time.Now()
	for i := 0; i < count; i++ {
		go func() {
			atomic.AddInt64(&standing, 1)
			if _, ok := <-channel; !ok {
				atomic.AddInt64(&told, 1)
			}
			group.Done()
		}()
	}
	for atomic.LoadInt64(&standing) < int64(count) {
		runtime.Gosched()
	}
	say("a task, until it waits", "ns", float64(time.Since(start).Nanoseconds())/float64(count))
	closed := time.Now()
	close(channel)
	group.Wait()
	say("a task, told CLOSED and ended", "ns",
		float64(time.Since(closed).Nanoseconds())/float64(count))
	need(told == int64(count), "somebody was not told")
}

func say(metric, unit string, value float64) {
	fmt.Printf("{\"work\":%q,\"system\":\"Go\",\"version\":%q,\"workers\":%d,"+
		"\"metric\":%q,\"unit\":%q,\"value\":%.3f}\n",
		work, strings.TrimPrefix(runtime.Version(), "go"), workers, metric, unit, value)
}

// Some turns; a short first one warms up and is not told.
func turns(metric, unit string, once func() float64) {
	enough := time.Duration(pick(50, 300)) * time.Millisecond
	start := time.Now()
	value := once()
	if time.Since(start) > enough {
		say(metric, unit, value)
		return
	}
	start = time.Now()
	for turn := 0; turn < 5 && time.Since(start) <= enough; turn++ {
		say(metric, unit, once())
	}
}

func main() {
	works := map[string]func(){
		"pingpong": func() { turns("a round trip", "ns", pingpong) },
		"buffered": func() {
			turns("a message, 1 to 1, room for 128", "ns", func() float64 { return flow(1) })
		},
		"mpmc": func() {
			turns("a message, 4 to 4, room for 128", "ns", func() float64 { return flow(4) })
		},
		"select": func() { turns("a message, select over 8", "ns", selects) },
		"crowd":  gather,
	}
	if len(os.Args) == 2 && os.Args[1] == "works" {
		for name := range works {
			fmt.Println(name, 0)
		}
		return
	}
	if len(os.Args) == 5 && works[os.Args[2]] != nil {
		work = os.Args[2]
		workers, _ = strconv.Atoi(os.Args[3])
		quick = os.Args[4] == "quick"
		runtime.GOMAXPROCS(workers)
		works[work]()
		return
	}
	fmt.Fprintln(os.Stderr, "usage: works | run WORK WORKERS full|quick")
	os.Exit(2)
}
