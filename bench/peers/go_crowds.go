// SPDX-License-Identifier: MIT

// Many goroutines: a million that wait, and a few well-behaved ones beside some that misbehave.
//
// Timed: live        1,000,000 goroutines (quick: 100,000), started until each waits for a channel,
//
//	            then until the channel is closed and the last has ended; the memory of one
//	neighbours  four goroutines that do unit after unit and yield in between: from one unit's
//	            start to the next one's, about 20 us of it work. Alone, and beside four that
//	            burn the CPU, start goroutines or allocate, all without end. Their own bounds
//	            (below) keep the machine alive
//
// Moves it: a stack of 2 KiB and its growth; the 10 ms after which Go preempts a goroutine; the
// help that every allocation gives to the collector.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// VmRSS + VmPTE, in bytes.
func footprint() float64 {
	file, err := os.Open("/proc/self/status")
	need(err == nil, "cannot read /proc/self/status")
	defer file.Close()
	sum, kib := 0, 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		for _, name := range []string{"VmRSS", "VmPTE"} {
			if _, err := fmt.Sscanf(lines.Text(), name+": %d", &kib); err == nil {
				sum += kib
			}
		}
	}
	return float64(sum) * 1024
}

func live() {
	count := pick(100000, 1000000)
	gate := make(chan struct{})
	var standing, ended int64
	var group sync.WaitGroup
	group.Add(count)
	base := footprint()
	start := time.Now()
	for i := 0; i < count; i++ {
		go func() {
			atomic.AddInt64(&standing, 1)
			<-gate
			atomic.AddInt64(&ended, 1)
			group.Done()
		}()
	}
	for atomic.LoadInt64(&standing) < int64(count) {
		runtime.Gosched()
	}
	say("create and block", "ns", float64(time.Since(start).Nanoseconds())/float64(count))
	say("bytes a task", "B", (footprint()-base)/float64(count))
	start = time.Now()
	close(gate)
	group.Wait()
	say("wake and end", "ns", float64(time.Since(start).Nanoseconds())/float64(count))
	need(ended == int64(count), "not all ended")
}

const (
	crew         = 4
	attackers    = 4
	unitRounds   = 10000
	bombChildren = 1000
	blockBytes   = 1000
	blocksMost   = 32000
)

var over int32

func isOver() bool { return atomic.LoadInt32(&over) != 0 }

func unit(state uint64) uint64 {
	for i := uint64(0); i < unitRounds; i++ {
		state = (state ^ i) * 0x9e3779b97f4a7c15
		state ^= state >> 29
	}
	return state
}

var sink uint64

func member(samples *[]int64) {
	state, last := uint64(1), now()
	for !isOver() {
		state = unit(state)
		runtime.Gosched()
		this := now()
		*samples = append(*samples, this-last)
		last = this
	}
	atomic.AddUint64(&sink, state)
}

func hog() {
	for state := uint64(1); !isOver(); {
		state = unit(state)
	}
}

func spawnBomb() {
	for !isOver() {
		batch(bombChildren)
	}
}

func allocationBomb() {
	for !isOver() {
		blocks := make([][]byte, 0, blocksMost)
		for len(blocks) < blocksMost && !isOver() {
			block := make([]byte, blockBytes)
			block[0], block[blockBytes-1] = 1, 1
			blocks = append(blocks, block)
		}
	}
}

func window(what string, attack func()) {
	var all [crew][]int64
	var group sync.WaitGroup
	atomic.StoreInt32(&over, 0)
	group.Add(crew)
	for i := range all {
		samples := &all[i]
		*samples = make([]int64, 0, 1<<17)
		go func() {
			member(samples)
			group.Done()
		}()
	}
	if attack != nil {
		group.Add(attackers)
		for i := 0; i < attackers; i++ {
			go func() {
				attack()
				group.Done()
			}()
		}
	}
	time.Sleep(time.Duration(pick(500, 1500)) * time.Millisecond)
	atomic.StoreInt32(&over, 1)
	group.Wait()
	samples := []int64{}
	for _, some := range all {
		need(len(some) > 1, "somebody got nothing done")
		samples = append(samples, some[1:]...)
	}
	say("a unit of work "+what+", p99", "us", percentile(samples, 99)/1000)
}

func neighbours() {
	window("alone", nil)
	window("beside CPU hogs", hog)
	window("beside spawn bombs", spawnBomb)
	window("beside allocation bombs", allocationBomb)
}

func init() {
	works["live"] = workKind{0, live}
	works["neighbours"] = workKind{0, neighbours}
}
