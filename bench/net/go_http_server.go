// SPDX-License-Identifier: MIT

// Go's net/http (protocol.h), with its default settings. GOMAXPROCS is the number of workers.
// net/http writes Date itself. The other fields are ours, in Go's order.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
)

const (
	streamBytes = 1 << 30
	burnRounds  = 3000000
)

var body = []byte("Hello, World!")

func hello(out http.ResponseWriter, request *http.Request) {
	fields := out.Header()
	fields["Server"] = []string{"bench"}
	fields["Content-Type"] = []string{"text/plain"}
	out.Write(body)
}

func burn(out http.ResponseWriter, request *http.Request) {
	state := uint64(len(request.URL.Path))
	for i := 0; i < burnRounds; i++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	if state == 0 {
		out.WriteHeader(500)
	}
	hello(out, request)
}

func stream(out http.ResponseWriter, request *http.Request) {
	part := make([]byte, 65536)
	out.Header().Set("Content-Length", strconv.Itoa(streamBytes))
	for sent := 0; sent < streamBytes; sent += len(part) {
		if _, err := out.Write(part); err != nil {
			return
		}
	}
}

func route(out http.ResponseWriter, request *http.Request) {
	switch request.URL.Path {
	case "/burn":
		burn(out, request)
	case "/stream":
		stream(out, request)
	default:
		hello(out, request)
	}
}

func need(right bool, what string) {
	if !right {
		fmt.Fprintln(os.Stderr, what)
		os.Exit(2)
	}
}

func main() {
	const usage = "usage: go_http_server http|https WORKERS"
	need(len(os.Args) == 3 && (os.Args[1] == "http" || os.Args[1] == "https"), usage)
	workers, _ := strconv.Atoi(os.Args[2])
	need(workers > 0, usage)
	runtime.GOMAXPROCS(workers)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	need(err == nil, "cannot listen")
	fmt.Println(listener.Addr().(*net.TCPAddr).Port, "Go_net/http",
		strings.TrimPrefix(runtime.Version(), "go"))
	if os.Args[1] == "https" {
		folder := os.Getenv("NET_TLS")
		err = http.ServeTLS(listener, http.HandlerFunc(route), folder+"/cert.pem",
			folder+"/key.pem")
		need(err == nil, "cannot serve")
	}
	need(http.Serve(listener, http.HandlerFunc(route)) == nil, "cannot serve")
}
