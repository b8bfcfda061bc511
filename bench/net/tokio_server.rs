// SPDX-License-Identifier: MIT

// tokio (protocol.h): a task for each connection, with its own buffer. One worker is the runtime
// of the current thread; more are the runtime of several threads.

use std::env;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

const BUFFER_BYTES: usize = 2048;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\n\
Content-Length: 13\r\n\r\nHello, World!";

fn has_head(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\r\n\r\n").is_some()
}

async fn serve(mut stream: TcpStream, hello: bool) -> io::Result<()> {
    let mut buffer = [0u8; BUFFER_BYTES];
    let mut have = 0;
    stream.set_nodelay(true)?;
    while have < BUFFER_BYTES {
        let got = stream.read(&mut buffer[have..]).await?;
        if got == 0 {
            break;
        }
        have += got;
        if !hello {
            stream.write_all(&buffer[..have]).await?;
        } else if has_head(&buffer[..have]) {
            stream.write_all(ANSWER).await?;
        } else {
            continue;
        }
        have = 0;
    }
    Ok(())
}

async fn accept_all(hello: bool) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{} tokio {}", listener.local_addr()?.port(), env!("TOKIO_VERSION"));
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream, hello));
    }
}

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().collect();
    let workers = words.get(2).and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
    let known = words.len() == 3 && (words[1] == "echo" || words[1] == "hello");
    if !known || workers == 0 {
        eprintln!("usage: tokio_server echo|hello WORKERS");
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
    builder.enable_io().build()?.block_on(accept_all(words[1] == "hello"))
}
