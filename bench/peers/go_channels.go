// SPDX-License-Identifier: MIT

// The works of janusrt_channels.c with goroutines.
//
// Timed: pingpong, buffered, mpmc, select, crowd.
// Moves it: the channel's lock, parking and waking, the spinning thread that every wake-up wakes.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	room     = 128
	crowd    = 1000000
	selected = 8
)

func messages() int { return pick(200000, 1000000) }

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

func init() {
	works["pingpong"] = workKind{0, func() { turns("a round trip", "ns", pingpong) }}
	works["buffered"] = workKind{0, func() {
		turns("a message, 1 to 1, room for 128", "ns", func() float64 { return flow(1) })
	}}
	works["mpmc"] = workKind{0, func() {
		turns("a message, 4 to 4, room for 128", "ns", func() float64 { return flow(4) })
	}}
	works["select"] = workKind{0, func() { turns("a message, select over 8", "ns", selects) }}
	works["crowd"] = workKind{0, gather}
}
