// SPDX-License-Identifier: MIT

// hyper (protocol.h), over tokio: a task for each connection. One worker is the runtime of the
// current thread; more are the runtime of several threads. hyper writes Date and Content-Length.

use hyper::header::{HeaderValue, CONTENT_TYPE, SERVER};
use hyper::server::conn::Http;
use hyper::service::service_fn;
use hyper::{Body, Request, Response};
use std::convert::Infallible;
use std::env;
use std::io;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

async fn hello(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    let mut answer = Response::new(Body::from("Hello, World!"));
    let fields = answer.headers_mut();
    fields.insert(SERVER, HeaderValue::from_static("bench"));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(answer)
}

async fn accept_all() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{} hyper {}", listener.local_addr()?.port(), env!("HYPER_VERSION"));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let mut http = Http::new();
            http.http1_only(true);
            let _ = http.serve_connection(stream, service_fn(hello)).await;
        });
    }
}

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().collect();
    let workers = words.get(2).and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
    if words.len() != 3 || words[1] != "http" || workers == 0 {
        eprintln!("usage: hyper_server http WORKERS");
        std::process::exit(2);
    }
    let mut builder = if workers == 1 {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    if workers > 1 {
        builder.worker_threads(workers);
    }
    builder.enable_io().enable_time().build()?.block_on(accept_all())
}
