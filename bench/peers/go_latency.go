// SPDX-License-Identifier: MIT

// How long until a goroutine runs that was just woken, or just started while its starter stays
// busy; and what deadlines cost.
//
// Timed: wake    from a send until the receiver runs in another thread, which slept in the kernel
//
//	steal   from a go statement until the goroutine runs in the other thread, which ran out of
//	        work 1 to 20 us before
//	timers  a receive that meets its deadline, with the other side's time, while 100,000
//	        goroutines sleep; then 100,000 goroutines that sleep 1 to 2 ms, again and again
//
// Moves it: the futex; the heap of timers of each worker. A thief leaves a goroutine that was just
// made ready to its owner for 3 us, and the kernel's timer slack turns this into 40 us and more.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	warmRounds = 10
	patience   = int64(5 * time.Second)
	sleepers   = 100000
)

func spinFor(ns int64) {
	for start := now(); now()-start < ns; {
	}
}

func spinUntilSet(stamp *int64) int64 {
	for start := now(); ; {
		if value := atomic.LoadInt64(stamp); value != 0 {
			return value
		}
		need(now()-start < patience, "a goroutine did not run although a worker was free")
	}
}

// The other threads. They are looked up now and then, because new ones may come; none ends.
var statFiles = map[int]int{}

func lookUpThreads() {
	entries, err := os.ReadDir("/proc/self/task")
	need(err == nil, "cannot list threads")
	for _, entry := range entries {
		var thread int
		fmt.Sscan(entry.Name(), &thread)
		if _, open := statFiles[thread]; !open {
			statFiles[thread], err = syscall.Open("/proc/self/task/"+entry.Name()+"/stat",
				syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
			need(err == nil, "cannot look at a thread")
		}
	}
}

// Waits until all other threads sleep, seen twice in a row. By raw system calls: the scheduler
// notices other calls, and may give the worker away.
func untilOthersSleep() {
	start := now()
	for seen := 0; seen < 2; {
		seen++
		own, _, _ := syscall.RawSyscall(syscall.SYS_GETTID, 0, 0, 0)
		for thread := range statFiles {
			if thread != int(own) && !threadSleeps(thread) {
				seen = 0
			}
		}
		need(now()-start < patience, "an idle worker does not sleep")
	}
	spinFor(3000)
}

func threadSleeps(thread int) bool {
	var line [256]byte
	got, _, _ := syscall.RawSyscall6(syscall.SYS_PREAD64, uintptr(statFiles[thread]),
		uintptr(unsafe.Pointer(&line[0])), uintptr(len(line)), 0, 0, 0)
	for i := 0; i+2 < int(got); i++ {
		if line[i] == ')' && line[i+1] == ' ' {
			return line[i+2] == 'S'
		}
	}
	return false
}

func tellLatency(what string, samples []int64) {
	say(what+", p50", "ns", percentile(samples, 50))
	say(what+", p99", "ns", percentile(samples, 99))
}

func wake() {
	rounds := pick(1000, 5000)
	samples := make([]int64, 0, rounds)
	letters := make(chan int64, 1)
	var woken, waits int64
	go func() {
		for {
			atomic.StoreInt64(&waits, 1)
			if _, more := <-letters; !more {
				return
			}
			atomic.StoreInt64(&woken, now())
		}
	}()
	for i := -warmRounds; i < rounds; i++ {
		for atomic.LoadInt64(&waits) == 0 {
			runtime.Gosched()
		}
		if i < 0 || i%100 == 0 {
			lookUpThreads()
		}
		untilOthersSleep()
		atomic.StoreInt64(&waits, 0)
		atomic.StoreInt64(&woken, 0)
		start := now()
		letters <- start
		end := spinUntilSet(&woken)
		if i >= 0 {
			samples = append(samples, end-start)
		}
	}
	close(letters)
	tellLatency("a sleeping worker wakes", samples)
}

func steal() {
	rounds := pick(1000, 5000)
	samples := make([]int64, 0, rounds)
	var began int64
	for i := -warmRounds; i < rounds; i++ {
		spinFor(int64(1000 + (i+warmRounds)*7919%19000))
		atomic.StoreInt64(&began, 0)
		start := now()
		go func() { atomic.StoreInt64(&began, now()) }()
		end := spinUntilSet(&began)
		if i >= 0 {
			samples = append(samples, end-start)
		}
	}
	tellLatency("a thief takes a task", samples)
}

// A receive with a deadline.
func receiveWithin(from chan int64, timer *time.Timer, within time.Duration) int64 {
	timer.Reset(within)
	select {
	case value := <-from:
		need(timer.Stop(), "a deadline passed")
		return value
	case <-timer.C:
		need(false, "a deadline passed")
		return 0
	}
}

func armDisarm() float64 {
	there, back := make(chan int64), make(chan int64)
	rounds := pick(50000, 200000)
	var group sync.WaitGroup
	group.Add(2)
	start := time.Now()
	go func() {
		timer := time.NewTimer(time.Hour)
		need(timer.Stop(), "a deadline passed")
		for i := 0; i < rounds; i++ {
			back <- receiveWithin(there, timer, time.Hour) + 1
		}
		group.Done()
	}()
	go func() {
		timer := time.NewTimer(time.Hour)
		value := int64(0)
		need(timer.Stop(), "a deadline passed")
		for i := 0; i < rounds; i++ {
			there <- value
			value = receiveWithin(back, timer, time.Hour)
		}
		need(value == int64(rounds), "an answer is missing")
		group.Done()
	}()
	group.Wait()
	return float64(time.Since(start).Nanoseconds()) / float64(2*rounds)
}

func timers() {
	// The repeated sleepers are first, because the others stay until the end.
	each := pick(5, 10)
	turns("100000 tasks sleep a millisecond or two, a sleep", "ns", func() float64 {
		var group sync.WaitGroup
		var slept int64
		group.Add(sleepers)
		start := time.Now()
		for i := 0; i < sleepers; i++ {
			rest := time.Millisecond + time.Duration(i%1000)*time.Microsecond
			go func() {
				for k := 0; k < each; k++ {
					time.Sleep(rest)
				}
				atomic.AddInt64(&slept, int64(each))
				group.Done()
			}()
		}
		group.Wait()
		need(slept == int64(each)*sleepers, "somebody did not sleep")
		return float64(time.Since(start).Nanoseconds()) / float64(slept)
	})
	var standing int64
	for i := 0; i < sleepers; i++ {
		rest := 1000*time.Second + time.Duration(i*7919%sleepers)*10*time.Millisecond
		go func() {
			atomic.AddInt64(&standing, 1)
			time.Sleep(rest)
			need(false, "somebody woke")
		}()
	}
	for atomic.LoadInt64(&standing) < sleepers {
		runtime.Gosched()
	}
	turns("arm and disarm, 100000 others wait", "ns", armDisarm)
}

func init() {
	works["wake"] = workKind{2, wake}
	works["steal"] = workKind{2, steal}
	works["timers"] = workKind{0, timers}
}
