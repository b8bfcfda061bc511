// SPDX-License-Identifier: MIT

// The works of janusrt_tasks.c with goroutines.
//
// Timed: spawn, million, fib, yield, skynet, growth.
// Moves it: a stack of 2 KiB for each goroutine, the wait group's shared count.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

const (
	batchSize = 1000
	million   = 1000000
	leaves    = 1000000
	width     = 10
)

func batch(children int) {
	var group sync.WaitGroup
	group.Add(children)
	for i := 0; i < children; i++ {
		go group.Done()
	}
	group.Wait()
}

func timedBatches(batches, children int) float64 {
	if children < batchSize {
		batch(children)
	} else {
		batch(batchSize)
	}
	start := time.Now()
	for i := 0; i < batches; i++ {
		batch(children)
	}
	return float64(time.Since(start).Nanoseconds()) / float64(batches*children)
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	var left int
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		left = fib(n - 1)
		group.Done()
	}()
	right := fib(n - 2)
	group.Wait()
	return left + right
}

func serialFib(n int) int {
	previous, current := 0, 1
	for ; n > 0; n-- {
		previous, current = current, previous+current
	}
	return previous
}

func fibs() float64 {
	n := pick(27, 32)
	start := time.Now()
	result := fib(n)
	spent := time.Since(start)
	need(result == serialFib(n), "fib is wrong")
	return float64(spent.Nanoseconds()) / float64(serialFib(n+1)-1)
}

func yields() float64 {
	count := pick(200000, 1000000)
	var group sync.WaitGroup
	start := time.Now()
	group.Add(2 * workers)
	for i := 0; i < 2*workers; i++ {
		go func() {
			for k := 0; k < count; k++ {
				runtime.Gosched()
			}
			group.Done()
		}()
	}
	group.Wait()
	return float64(time.Since(start).Nanoseconds()) / float64(2*count)
}

func skynetNode(first, leaves int) int {
	if leaves == 1 {
		return first
	}
	var sums [width]int
	var group sync.WaitGroup
	part := leaves / width
	group.Add(width)
	for i := 0; i < width; i++ {
		i := i
		go func() {
			sums[i] = skynetNode(first+i*part, part)
			group.Done()
		}()
	}
	group.Wait()
	sum := 0
	for _, partSum := range sums {
		sum += partSum
	}
	return sum
}

func skynet() float64 {
	start := time.Now()
	sum := skynetNode(0, leaves)
	spent := time.Since(start)
	need(sum == leaves*(leaves-1)/2, "the sum is wrong")
	return float64(spent.Nanoseconds()) / 1e6
}

func growth() {
	for children := 100; children <= million; children *= 10 {
		children := children
		batches := million / children
		if batches > 300 {
			batches = 300
		}
		turns(fmt.Sprintf("a task, batches of %d", children), "ns",
			func() float64 { return timedBatches(batches, children) })
	}
}

func init() {
	works["spawn"] = workKind{0, func() {
		turns("a task, batches of 1000", "ns",
			func() float64 { return timedBatches(pick(100, 300), batchSize) })
	}}
	works["million"] = workKind{0, func() {
		say("a task, first batch of 1000000", "ns", timedBatches(1, million))
		turns("a task, one batch of 1000000", "ns",
			func() float64 { return timedBatches(1, million) })
	}}
	works["fib"] = workKind{0, func() { turns("a spawn of fib", "ns", fibs) }}
	works["yield"] = workKind{0, func() { turns("a yield", "ns", yields) }}
	works["skynet"] = workKind{0, func() { turns("1000000 leaves", "ms", skynet) }}
	works["growth"] = workKind{0, growth}
}
