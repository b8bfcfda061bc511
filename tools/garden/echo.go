// SPDX-License-Identifier: MIT
// Go's net/http: answers what it understood, in a field. Usage: echo PORT
package main

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

func main() {
	handler := http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			out.WriteHeader(400)
			return
		}
		target := request.URL.RequestURI()
		out.Header().Set("X-Saw",
			url.QueryEscape(request.Method+" "+target+" "+string(body)))
	})
	server := http.Server{Addr: "127.0.0.1:" + os.Args[1], Handler: handler,
		ReadTimeout: time.Minute}
	panic(server.ListenAndServe())
}
