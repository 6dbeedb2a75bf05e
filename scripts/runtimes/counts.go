// Go follows its mask, about once a second: GOMAXPROCS and NumCPU, serial and parallel.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

func say(phase string) {
	fmt.Printf("{\"phase\": %q, \"of\": \"GOMAXPROCS\", \"count\": %d}\n", phase, runtime.GOMAXPROCS(0))
	fmt.Printf("{\"phase\": %q, \"of\": \"NumCPU\", \"count\": %d}\n", phase, runtime.NumCPU())
}

func seconds(text string) time.Duration {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return time.Duration(value * float64(time.Second))
}

func spin(until time.Time) (sum uint64) {
	for time.Now().Before(until) {
		for i := uint64(0); i < 10000; i++ {
			sum += i * sum
		}
	}
	return sum
}

func main() {
	serial, parallel := seconds(os.Args[1]), seconds(os.Args[2])
	say("start")
	for end := time.Now().Add(serial); time.Now().Before(end); say("serial") {
		until := time.Now().Add(time.Second)
		if until.After(end) {
			until = end
		}
		spin(until)
	}
	end := time.Now().Add(parallel)
	var all sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		all.Add(1)
		go func() { defer all.Done(); spin(end) }()
	}
	for time.Now().Before(end) {
		say("parallel")
		time.Sleep(50 * time.Millisecond)
	}
	all.Wait()
	say("end")
}
