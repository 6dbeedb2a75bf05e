//! Answers one client over HTTP/1: a scrape of Prometheus, the chooser of jobs, or an operator with curl.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long a client may take for its request, and again for the answer.
const TIMEOUT: Duration = Duration::from_millis(500);
/// A longer request is none of ours.
const MOST_BYTES: usize = 8192;

/// What there is at a port.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// Its path; `/` gives it too.
    pub path: &'static str,
    /// What kind of text it is.
    pub content_type: &'static str,
    /// The text.
    pub text: &'a str,
}

/// Reads a request, and answers it with the page if it is for that.
///
/// # Errors
/// When the client is gone or too slow.
pub fn answer(mut client: TcpStream, page: Page<'_>) -> io::Result<()> {
    let head = head(&mut client, Instant::now() + TIMEOUT)?;
    write(&mut client, response(&head, page).as_bytes(), Instant::now() + TIMEOUT)
}

/// Writes all, however slowly the client reads, until a deadline.
fn write(client: &mut TcpStream, mut rest: &[u8], deadline: Instant) -> io::Result<()> {
    while !rest.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_write_timeout(Some(left))?;
        match client.write(rest)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => rest = rest.get(count..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// The request up to the blank line.
fn head(client: &mut TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut bytes = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > MOST_BYTES {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(bytes.get(..count).unwrap_or_default()),
        }
    }
    Ok(head)
}

fn response(head: &[u8], page: Page<'_>) -> String {
    let head = String::from_utf8_lossy(head);
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let there = format!("there is {} only\n", page.path);
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", path) if path == page.path || path == "/" => {
            ("200 OK", page.content_type, page.text)
        }
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", there.as_str()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET and HEAD are answered\n"),
    };
    let shown = if method == "HEAD" { "" } else { body };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n\
         {shown}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn page(text: &str) -> Page<'_> {
        Page { path: "/metrics", content_type: "text/plain; version=0.0.4", text }
    }

    fn exchange(request: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        answer(listener.accept().unwrap().0, page("up 1\n")).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn requests_are_answered_by_method_and_path() {
        let metrics = exchange("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
        assert!(
            metrics.contains("text/plain; version=0.0.4") && metrics.ends_with("\r\n\r\nup 1\n")
        );
        assert!(
            exchange("HEAD / HTTP/1.0\r\n\r\n")
                .ends_with("Content-Length: 5\r\nConnection: close\r\n\r\n")
        );
        assert!(exchange("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(exchange("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(exchange("\r\n\r\n").starts_with("HTTP/1.1 405 "));
    }

    #[test]
    fn a_slow_client_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"GET /metrics").unwrap();
        let cut = answer(listener.accept().unwrap().0, page("up 1\n")).unwrap_err();
        assert!(matches!(cut.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{cut}");
    }

    #[test]
    fn a_client_that_does_not_read_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let long = "x".repeat(64 << 20);
        assert!(answer(listener.accept().unwrap().0, page(&long)).is_err());
    }

    #[test]
    fn an_endless_request_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(&vec![b'x'; MOST_BYTES + 2048]).unwrap();
        assert!(answer(listener.accept().unwrap().0, page("up 1\n")).is_err());
    }
}
