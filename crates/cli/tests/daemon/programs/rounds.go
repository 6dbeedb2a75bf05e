// Does as rounds.c does.
package main

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

func computed() uint32 {
	x := uint32(1)
	for round := 0; round < 1000000; round++ {
		x = x*1664525 + 1013904223
	}
	return x
}

func main() {
	// More threads run than there are CPUs, as in the other programs.
	runtime.GOMAXPROCS(8)
	first := computed()
	var end int32
	var workers, begun sync.WaitGroup
	count := 0
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		wanted, err := strconv.Atoi(lines.Text())
		if err != nil || wanted == 0 {
			break
		}
		for ; count < wanted; count++ {
			workers.Add(1)
			begun.Add(1)
			go func() {
				defer workers.Done()
				// A thread of its own.
				runtime.LockOSThread()
				begun.Done()
				for atomic.LoadInt32(&end) == 0 {
					if computed() != first {
						os.Exit(1)
					}
				}
			}()
		}
		begun.Wait()
		os.Stdout.WriteString(strconv.Itoa(count) + "\n")
	}
	atomic.StoreInt32(&end, 1)
	workers.Wait()
	os.Stdout.WriteString(strconv.Itoa(count) + " " + strconv.FormatUint(uint64(first), 10) + "\n")
}
