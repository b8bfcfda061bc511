// SPDX-License-Identifier: MIT

// The works of janusrt_actors.c with goroutines. An actor is a goroutine that loops over a channel.
//
// Timed: cast, call, ring; of actors: start and stop, memory, a message to each; restart.
//
//	A mailbox has room for 128 messages, in a crowd for 16, as ours. A call carries a channel
//	for its reply. Without a deadline the caller uses one channel for all calls. With a
//	deadline each call needs a new one, because a late reply must not answer the next call.
//	Its timer is stopped after each call. Go has no DOWN and no supervisor. The one of restart
//	is written by hand: a goroutine learns the reason of a panic and starts a new goroutine on
//	the same mailbox. "Go loop" recovers and goes on in the same goroutine. Neither limits how
//	often, and neither reports.
//
// Moves it: the channel's lock, parking and waking, a stack of 2 KiB, panic and recover.
package main

import (
	"runtime"
	"sync"
	"time"
)

const (
	ringActors = 1000
	idleRoom   = 16
)

// Senders send numbers; the actor adds them up.
func castFrom(senders int) float64 {
	mailbox, done := make(chan int64, room), make(chan int64)
	each := int64(messages() / senders)
	var group sync.WaitGroup
	group.Add(senders)
	start := time.Now()
	go func() {
		sum := int64(0)
		for value := range mailbox {
			sum += value
		}
		done <- sum
	}()
	for k := 0; k < senders; k++ {
		go func() {
			for i := int64(1); i <= each; i++ {
				mailbox <- i
			}
			group.Done()
		}()
	}
	group.Wait()
	close(mailbox)
	sum := <-done
	spent := time.Since(start)
	need(sum == int64(senders)*(each*(each+1)/2), "a message is missing")
	return float64(spent.Nanoseconds()) / float64(each*int64(senders))
}

type request struct {
	value int64
	reply chan int64
}

func answerer() chan request {
	mailbox := make(chan request, room)
	go func() {
		for asked := range mailbox {
			asked.reply <- asked.value + 1
		}
	}()
	return mailbox
}

func calls() int { return pick(100000, 500000) }

func call() float64 {
	mailbox, reply := answerer(), make(chan int64, 1)
	value := int64(0)
	start := time.Now()
	for i := 0; i < calls(); i++ {
		mailbox <- request{value, reply}
		value = <-reply
	}
	spent := time.Since(start)
	need(value == int64(calls()), "an answer is missing")
	close(mailbox)
	return float64(spent.Nanoseconds()) / float64(calls())
}

func callWithin(mailbox chan request, value int64) (int64, bool) {
	reply, timer := make(chan int64, 1), time.NewTimer(5*time.Second)
	defer timer.Stop()
	select {
	case mailbox <- request{value, reply}:
	case <-timer.C:
		return 0, false
	}
	select {
	case answer := <-reply:
		return answer, true
	case <-timer.C:
		return 0, false
	}
}

func callDeadline() float64 {
	mailbox := answerer()
	value, inTime := int64(0), true
	start := time.Now()
	for i := 0; i < calls() && inTime; i++ {
		value, inTime = callWithin(mailbox, value)
	}
	spent := time.Since(start)
	need(inTime && value == int64(calls()), "an answer is missing")
	close(mailbox)
	return float64(spent.Nanoseconds()) / float64(calls())
}

// One number goes round until it is zero.
func ring() float64 {
	var mailboxes [ringActors]chan int64
	done := make(chan bool)
	for i := range mailboxes {
		mailboxes[i] = make(chan int64, room)
	}
	for i := range mailboxes {
		own, next := mailboxes[i], mailboxes[(i+1)%ringActors]
		go func() {
			for hops := range own {
				if hops == 0 {
					done <- true
				} else {
					next <- hops - 1
				}
			}
		}()
	}
	mailboxes[0] <- ringActors // each runs once
	<-done
	start := time.Now()
	mailboxes[0] <- int64(messages())
	<-done
	spent := time.Since(start)
	for i := range mailboxes {
		close(mailboxes[i])
	}
	return float64(spent.Nanoseconds()) / float64(messages())
}

func startStop() float64 {
	count := pick(20000, 100000)
	sum := int64(0)
	start := time.Now()
	for i := 0; i < count; i++ {
		mailbox, done := make(chan int64, room), make(chan bool)
		go func() {
			for value := range mailbox {
				sum += value
			}
			close(done)
		}()
		close(mailbox)
		<-done
	}
	return float64(time.Since(start).Nanoseconds()) / float64(count)
}

func idleActors() {
	count := pick(100000, 1000000)
	mailboxes := make([]chan int64, count)
	for i := range mailboxes {
		mailboxes[i] = nil // the pages of the array are no part of an actor
	}
	answers, ready := make(chan int64, room), make(chan bool, room)
	runtime.GC()
	base := footprint()
	for i := range mailboxes {
		own := make(chan int64, idleRoom)
		mailboxes[i] = own
		go func() {
			ready <- true
			for value := range own {
				answers <- value + 1
			}
		}()
		<-ready
	}
	say("an idle actor", "B", (footprint()-base)/float64(count))
	sum, start := int64(0), time.Now()
	go func() {
		for _, mailbox := range mailboxes {
			mailbox <- 1
		}
	}()
	for range mailboxes {
		sum += <-answers
	}
	say("a message to each idle actor, all answer", "ns",
		float64(time.Since(start).Nanoseconds())/float64(count))
	say("an idle actor that has answered", "B", (footprint()-base)/float64(count))
	need(sum == 2*int64(count), "an answer is missing")
}

// One incarnation, which tells how it ended: by a panic, or (nil) because its mailbox was closed.
func incarnation(mailbox chan request) (reason interface{}) {
	defer func() { reason = recover() }()
	for asked := range mailbox {
		if asked.reply == nil {
			panic("crash")
		}
		asked.reply <- asked.value + 1
	}
	return nil
}

func supervise(mailbox chan request) {
	ended := make(chan interface{})
	for {
		go func() { ended <- incarnation(mailbox) }()
		if <-ended == nil {
			return
		}
	}
}

func loop(mailbox chan request) {
	for incarnation(mailbox) != nil {
		continue
	}
}

func restart(system string, keep func(mailbox chan request)) {
	rounds := pick(1000, 5000)
	mailbox, reply := make(chan request, room), make(chan int64, 1)
	go keep(mailbox)
	samples := make([]int64, 0, rounds)
	for i := -10; i < rounds; i++ {
		start := now()
		mailbox <- request{}
		mailbox <- request{1, reply}
		need(<-reply == 2, "the answer is wrong")
		if i >= 0 {
			samples = append(samples, now()-start)
		}
	}
	close(mailbox)
	sayAs(system, "from the crash to an answer, p50", "ns", percentile(samples, 50))
	sayAs(system, "from the crash to an answer, p99", "ns", percentile(samples, 99))
}

func init() {
	works["cast"] = workKind{0, func() {
		turns("a message, 1 to 1", "ns", func() float64 { return castFrom(1) })
		turns("a message, 4 to 1", "ns", func() float64 { return castFrom(4) })
	}}
	works["call"] = workKind{0, func() {
		turns("a call without a deadline", "ns", call)
		turns("a call with a deadline of 5 s", "ns", callDeadline)
	}}
	works["ring"] = workKind{0, func() { turns("a hop, 1000 actors", "ns", ring) }}
	works["actors"] = workKind{0, func() {
		turns("start, stop and await an actor", "ns", startStop)
		idleActors()
	}}
	works["restart"] = workKind{0, func() {
		restart("Go", supervise)
		restart("Go loop", loop)
	}}
}
