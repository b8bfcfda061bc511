// SPDX-License-Identifier: MIT

// Go's net package (protocol.h): a goroutine for each connection, with its own buffer. Go has its
// default settings; GOMAXPROCS is the number of workers.
package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
)

const bufferBytes = 2048

var answer = []byte("HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\n" +
	"Content-Length: 13\r\n\r\nHello, World!")

func echo(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, bufferBytes)
	for {
		got, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err = connection.Write(buffer[:got]); err != nil {
			return
		}
	}
}

func hello(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, bufferBytes)
	for have := 0; have < len(buffer); {
		got, err := connection.Read(buffer[have:])
		if err != nil {
			return
		}
		have += got
		if !bytes.Contains(buffer[:have], []byte("\r\n\r\n")) {
			continue
		}
		have = 0
		if _, err = connection.Write(answer); err != nil {
			return
		}
	}
}

func need(right bool, what string) {
	if !right {
		fmt.Fprintln(os.Stderr, what)
		os.Exit(2)
	}
}

func main() {
	need(len(os.Args) == 3, "usage: go_server echo|hello WORKERS")
	serve, known := map[string]func(net.Conn){"echo": echo, "hello": hello}[os.Args[1]]
	workers, _ := strconv.Atoi(os.Args[2])
	need(known && workers > 0, "usage: go_server echo|hello WORKERS")
	runtime.GOMAXPROCS(workers)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	need(err == nil, "cannot listen")
	fmt.Println(listener.Addr().(*net.TCPAddr).Port, "Go",
		strings.TrimPrefix(runtime.Version(), "go"))
	for {
		connection, err := listener.Accept()
		need(err == nil, "cannot accept")
		go serve(connection)
	}
}
