//! Asks the daemons of the nodes for their jobs, in a thread of its own.
//!
//! ```text
//! each round: AT_ONCE threads take one node after the other
//!     connect, ask, read to the end: all within TIMEOUT, and no more than MOST_ANSWER_BYTES
//!     hand over the answer, or why there is none
//! ```
//!
//! So neither a node that hangs (`nodes_are_asked_again_and_one_that_hangs_holds_up_no_other`,
//! `a_node_that_hangs_or_trickles_is_given_up`) nor one that writes without end
//! (`garbage_and_an_endless_answer_are_refused`) holds up the others, or the releaser.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TryIter, channel, sync_channel,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use symbiont_wire::jobs::{MOST_ANSWER_BYTES, NodeJobs};

/// How many nodes are asked at a time.
const AT_ONCE: usize = 8;
/// How long a node may take, from the connection to the end of its answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Answers that wait to be read; beyond that no further node is asked.
const MOST_ANSWERS: usize = 64;
/// How often the thread checks for nodes to ask while there are none.
const SOON: Duration = Duration::from_millis(200);

/// Where a node is asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeAddress {
    /// The node's name.
    pub name: String,
    /// Its address, by name or number.
    pub address: String,
}

/// What a node answered, or why it did not.
#[derive(Debug)]
pub struct NodeAnswer {
    /// The node's name.
    pub node: String,
    /// Its jobs, or why they are not known.
    pub jobs: Result<NodeJobs, String>,
}

/// The thread that asks; it ends when this is dropped.
#[derive(Debug)]
pub struct NodePoller {
    asked: Arc<Mutex<Vec<NodeAddress>>>,
    answers: Receiver<NodeAnswer>,
    /// Its end ends the thread.
    _end: Sender<()>,
}

impl NodePoller {
    /// Asks at a port, every so often.
    pub fn start(port: u16, every: Duration) -> std::io::Result<Self> {
        let asked: Arc<Mutex<Vec<NodeAddress>>> = Arc::default();
        let (answer, answers) = sync_channel(MOST_ANSWERS);
        let (end, ended) = channel();
        let nodes = Arc::clone(&asked);
        let repeat = move || {
            loop {
                let nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let pause = if nodes.is_empty() { SOON } else { every };
                if !round(&nodes, port, &answer) {
                    return;
                }
                match ended.recv_timeout(pause) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        std::thread::Builder::new().name("nodes".to_owned()).spawn(repeat)?;
        Ok(Self { asked, answers, _end: end })
    }

    /// Asks these nodes from the next round on.
    pub fn ask(&self, nodes: Vec<NodeAddress>) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = nodes;
    }

    /// The answers since the last call.
    pub fn answers(&self) -> TryIter<'_, NodeAnswer> {
        self.answers.try_iter()
    }
}

/// Asks each node once; false: nothing reads the answers any more.
fn round(nodes: &[NodeAddress], port: u16, answers: &SyncSender<NodeAnswer>) -> bool {
    let next = AtomicUsize::new(0);
    let ask_some = || {
        while let Some(node) = nodes.get(next.fetch_add(1, Ordering::Relaxed)) {
            let jobs = ask(&node.address, port, TIMEOUT)
                .map_err(|why| format!("at {} port {port}: {why}", node.address));
            if answers.send(NodeAnswer { node: node.name.clone(), jobs }).is_err() {
                return false;
            }
        }
        true
    };
    std::thread::scope(|scope| {
        let some = (1..nodes.len().min(AT_ONCE)).map(|_| scope.spawn(ask_some));
        let some: Vec<_> = some.collect();
        let own = ask_some();
        some.into_iter().fold(own, |all, one| one.join().unwrap_or(false) && all)
    })
}

/// Asks a node for its jobs.
fn ask(address: &str, port: u16, time: Duration) -> Result<NodeJobs, String> {
    let deadline = Instant::now() + time;
    let mut node = connect(address, port, deadline)?;
    let request =
        format!("GET /jobs HTTP/1.1\r\nHost: {address}:{port}\r\nConnection: close\r\n\r\n");
    node.set_write_timeout(Some(left(deadline)?)).map_err(|error| words(&error))?;
    node.write_all(request.as_bytes()).map_err(|error| words(&error))?;
    let (mut answer, mut bytes) = (Vec::new(), [0; 1 << 14]);
    while answer.len() <= MOST_ANSWER_BYTES {
        node.set_read_timeout(Some(left(deadline)?)).map_err(|error| words(&error))?;
        match node.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(bytes.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(words(&error)),
        }
    }
    NodeJobs::of_response(&answer).map_err(|error| error.to_string())
}

fn connect(address: &str, port: u16, deadline: Instant) -> Result<TcpStream, String> {
    let mut why = "it has no address".to_owned();
    for place in (address, port).to_socket_addrs().map_err(|error| words(&error))? {
        match TcpStream::connect_timeout(&place, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = words(&error),
        }
    }
    Err(why)
}

/// The time until a deadline.
fn left(deadline: Instant) -> Result<Duration, String> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

fn words(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => late(),
        _ => error.to_string(),
    }
}

fn late() -> String {
    format!("no whole answer within {} s", TIMEOUT.as_secs())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::*;

    /// A node that reads a request, and then does this.
    fn node(act: impl FnOnce(TcpStream) + Send + 'static) -> (u16, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut bytes = [0; 512];
            assert!(client.read(&mut bytes).unwrap() > 0);
            act(client);
        };
        (port, std::thread::spawn(serve))
    }

    fn why(time: Duration, act: impl FnOnce(TcpStream) + Send + 'static) -> String {
        let (port, serves) = node(act);
        let why = ask("127.0.0.1", port, time).unwrap_err();
        serves.join().unwrap();
        why
    }

    #[test]
    fn a_node_that_hangs_or_trickles_is_given_up() {
        let time = Duration::from_millis(200);
        // Both end when they are given up.
        let hangs = why(time, |mut client| drop(client.read_to_end(&mut Vec::new())));
        assert_eq!(hangs, "no whole answer within 3 s");
        let trickles = why(time, move |mut client| {
            while client.write_all(b"H").is_ok() {
                std::thread::sleep(time / 20);
            }
        });
        assert_eq!(trickles, "no whole answer within 3 s");
    }

    #[test]
    fn garbage_and_an_endless_answer_are_refused() {
        let time = Duration::from_secs(30);
        let garbage = why(time, |mut client| client.write_all(b"\0\xff garbage").unwrap());
        assert_eq!(garbage, "its answer is not an HTTP response");
        let endless = why(time, |mut client| while client.write_all(&[b'x'; 1 << 16]).is_ok() {});
        assert!(endless.contains("longer than"), "{endless}");
        let refused = ask("127.0.0.1", 1, time).unwrap_err();
        assert!(refused.contains("refused"), "{refused}");
    }

    #[test]
    fn nodes_are_asked_again_and_one_that_hangs_holds_up_no_other() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let poller = NodePoller::start(port, Duration::from_millis(10)).unwrap();
        let asked = |name: &str, address: &str| NodeAddress {
            name: name.to_owned(),
            address: address.to_owned(),
        };
        // Nothing listens at the second address.
        poller.ask(vec![asked("hangs", "127.0.0.1"), asked("gone", "127.0.0.2")]);
        let mut heard: Vec<NodeAnswer> = Vec::new();
        let begin = Instant::now();
        while heard.iter().filter(|answer| answer.node == "hangs").count() < 2 {
            assert!(begin.elapsed() < 20 * TIMEOUT, "{heard:?}");
            heard.extend(poller.answers());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(heard[0].node, "gone", "{heard:?}");
        let why = heard[0].jobs.as_ref().unwrap_err();
        assert!(why.starts_with(&format!("at 127.0.0.2 port {port}: ")), "{why}");
    }
}
