//! The thread that writes the file of metrics and answers the ports.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use symbiont_linux::launch::be_normal;
use symbiont_safe_open::output;

use super::http::{self, Page};
use crate::config::MetricsConfig;

/// How long the end of the thread is waited for.
const TIMEOUT: Duration = Duration::from_secs(2);
/// After how long a port that could not be opened is tried again.
const RETRY: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// What is published.
#[derive(Debug, Clone, Default)]
pub struct Published {
    /// The metrics, for file and port.
    pub metrics: String,
    /// The jobs, for a port of their own.
    pub jobs: String,
}

/// Publishes texts until it is dropped.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
    /// A byte: there is a new text. Closed: the end.
    wake: Option<UnixStream>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
}

/// What both threads know.
#[derive(Debug, Default)]
struct Shared {
    published: Mutex<Arc<Published>>,
    file_trouble: Mutex<Option<String>>,
    port_trouble: Mutex<Option<String>>,
    jobs_trouble: Mutex<Option<String>>,
}

/// What a port is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Metrics,
    Jobs,
}

impl Endpoint {
    fn page(self, published: &Published) -> Page<'_> {
        match self {
            Self::Metrics => {
                Page { path: "/metrics", content_type: CONTENT_TYPE, text: &published.metrics }
            }
            Self::Jobs => {
                Page { path: "/jobs", content_type: "application/json", text: &published.jobs }
            }
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Metrics => "metrics are",
            Self::Jobs => "jobs are",
        }
    }

    fn trouble(self, shared: &Shared) -> &Mutex<Option<String>> {
        match self {
            Self::Metrics => &shared.port_trouble,
            Self::Jobs => &shared.jobs_trouble,
        }
    }
}

/// A port.
#[derive(Debug)]
struct Port {
    endpoint: Endpoint,
    address: SocketAddr,
    listener: Option<TcpListener>,
}

impl Publisher {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the kernel has no more threads or descriptors. Trouble with file and port comes later,
    /// as [`Publisher::trouble`].
    pub fn start(config: &MetricsConfig) -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let shared = Arc::new(Shared::default());
        let (end, ended) = channel();
        let worker = Worker {
            shared: Arc::clone(&shared),
            woken,
            file: config.file.clone(),
            ports: [(Endpoint::Metrics, config.listen), (Endpoint::Jobs, config.jobs)]
                .into_iter()
                .filter_map(|(endpoint, address)| Some((endpoint, address?)))
                .map(|(endpoint, address)| Port { endpoint, address, listener: None })
                .collect(),
            _end: end,
        };
        std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            be_normal();
            worker.run();
        })?;
        Ok(Self { shared, wake: Some(wake), ended })
    }

    /// Publishes this from now on.
    pub fn publish(&self, published: Published) {
        set(&self.shared.published, Arc::new(published));
        if let Some(mut wake) = self.wake.as_ref() {
            // Where the buffer is full, it is about to wake.
            let _ = wake.write(&[1]);
        }
    }

    /// What hinders it, a line each.
    #[must_use]
    pub fn trouble(&self) -> Vec<String> {
        let Shared { file_trouble, port_trouble, jobs_trouble, .. } = &*self.shared;
        [file_trouble, port_trouble, jobs_trouble].into_iter().filter_map(get).collect()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.wake = None;
        // A thread that hangs in a file system is left behind.
        let _ = self.ended.recv_timeout(TIMEOUT);
    }
}

fn set<T>(shared: &Mutex<T>, value: T) {
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

fn get<T: Clone>(shared: &Mutex<T>) -> T {
    shared.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

struct Worker {
    shared: Arc<Shared>,
    woken: UnixStream,
    file: Option<PathBuf>,
    ports: Vec<Port>,
    /// Dropped at the end.
    _end: Sender<()>,
}

impl Worker {
    fn run(mut self) {
        loop {
            self.listen();
            let Ok((news, clients)) = self.sleep() else { break };
            if news {
                match self.drain() {
                    Ok(()) => self.write(),
                    Err(_) => break,
                }
            }
            for port in clients {
                self.attend(port);
            }
        }
        if let Some(file) = &self.file {
            // It would be taken for a daemon that still runs.
            let _ = output::remove(file);
        }
    }

    /// Opens the ports that are not open.
    fn listen(&mut self) {
        for port in self.ports.iter_mut().filter(|port| port.listener.is_none()) {
            let opened = TcpListener::bind(port.address).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            });
            let trouble = match opened {
                Ok(listener) => {
                    port.listener = Some(listener);
                    None
                }
                Err(error) => Some(format!(
                    "{} not served at {}: {error}",
                    port.endpoint.what(),
                    port.address
                )),
            };
            set(port.endpoint.trouble(&self.shared), trouble);
        }
    }

    /// Waits for a new text or a client: is there one, and at which ports are clients?
    fn sleep(&self) -> io::Result<(bool, Vec<usize>)> {
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        let open =
            || (0..).zip(&self.ports).filter_map(|(at, port)| Some((at, port.listener.as_ref()?)));
        fds.extend(open().map(|(_, listener)| PollFd::new(listener, PollFlags::IN)));
        let tries_again = self.ports.iter().any(|port| port.listener.is_none());
        match poll(&mut fds, tries_again.then_some(&RETRY)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let news = ready.next().unwrap_or(false);
        let clients = open().zip(ready).filter(|(_, ready)| *ready).map(|((at, _), _)| at);
        Ok((news, clients.collect()))
    }

    /// Takes the bytes that woke it.
    ///
    /// # Errors
    /// At the end.
    fn drain(&mut self) -> io::Result<()> {
        let mut bytes = [0; 64];
        loop {
            match self.woken.read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn write(&self) {
        let Some(file) = &self.file else { return };
        let published = get(&self.shared.published);
        let written = output::replace_by(file, 0o644, published.metrics.as_bytes());
        let path = file.display();
        let trouble =
            written.err().map(|error| format!("metrics are not written to {path}: {error}"));
        set(&self.shared.file_trouble, trouble);
    }

    /// Answers a client of a port.
    fn attend(&mut self, at: usize) {
        let Some(port) = self.ports.get_mut(at) else { return };
        let accepted = match &port.listener {
            Some(listener) => listener.accept(),
            None => return,
        };
        let client = match accepted {
            Ok((client, _)) => client,
            // It went away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {
                // No descriptors, as a rule. It would be ready at once, again and again: what is
                // wrong shows when the port is opened anew.
                port.listener = None;
                return;
            }
        };
        let published = get(&self.shared.published);
        if client.set_nonblocking(false).is_ok() {
            // A client that is gone or too slow comes again.
            let _ = http::answer(client, port.endpoint.page(&published));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpStream;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;

    fn file(path: &Path) -> MetricsConfig {
        MetricsConfig { file: Some(path.to_owned()), ..MetricsConfig::default() }
    }

    fn port(address: SocketAddr) -> MetricsConfig {
        MetricsConfig { listen: Some(address), ..MetricsConfig::default() }
    }

    fn metrics(text: String) -> Published {
        Published { metrics: text, jobs: String::new() }
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn get_from(address: SocketAddr) -> Option<String> {
        page_of(address, "/metrics")
    }

    fn page_of(address: SocketAddr, path: &str) -> Option<String> {
        let mut client = TcpStream::connect(address).ok()?;
        client.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        client.read_to_string(&mut answer).ok()?;
        Some(answer.split_once("\r\n\r\n")?.1.to_owned())
    }

    #[test]
    fn a_device_as_its_file_stays_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &file).unwrap();
        let config = MetricsConfig { file: Some(file.clone()), ..MetricsConfig::default() };
        let publisher = Publisher::start(&config).unwrap();
        for round in 0..3 {
            let metrics = format!("{round}\n");
            publisher.publish(Published { metrics, jobs: String::new() });
        }
        drop(publisher);
        let kind = |path: &Path| fs::symlink_metadata(path).unwrap().file_type();
        assert!(kind(&file).is_symlink());
        assert!(std::os::unix::fs::FileTypeExt::is_char_device(&kind(Path::new("/dev/null"))));
    }

    #[test]
    fn the_file_goes_with_the_publisher() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("symbiont.prom");
        let publisher = Publisher::start(&file(&path)).unwrap();
        publisher.publish(metrics("up 1\n".to_owned()));
        wait_until("it is written", || {
            fs::read_to_string(&path).is_ok_and(|text| text == "up 1\n")
        });
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        drop(publisher);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_reader_never_sees_a_part_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("symbiont.prom");
        output::replace_by(&path, 0o644, b"0\n").unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..200 {
                    let text = format!("{round}\n").repeat(2000);
                    output::replace_by(&path, 0o644, text.as_bytes()).unwrap();
                }
                over.store(true, Ordering::Relaxed);
            });
            while !over.load(Ordering::Relaxed) {
                let text = fs::read_to_string(&path).unwrap();
                let mut lines = text.lines();
                let first = lines.next().unwrap();
                assert!(text.ends_with('\n') && lines.all(|line| line == first));
            }
        });
    }

    #[test]
    fn trouble_with_the_file_ends_with_its_cause() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/symbiont.prom");
        let publisher = Publisher::start(&file(&path)).unwrap();
        publisher.publish(metrics("up 1\n".to_owned()));
        wait_until("it is reported", || !publisher.trouble().is_empty());
        let trouble = publisher.trouble().remove(0);
        let missing = path.parent().unwrap().display();
        let end = format!("symbiont.prom: there is no folder {missing}");
        assert!(trouble.ends_with(&end), "{trouble}");
        fs::create_dir(path.parent().unwrap()).unwrap();
        publisher.publish(metrics("up 1\n".to_owned()));
        wait_until("it is over", || publisher.trouble().is_empty() && path.exists());
    }

    #[test]
    fn a_busy_port_is_tried_again() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        let publisher = Publisher::start(&port(address)).unwrap();
        wait_until("it is reported", || !publisher.trouble().is_empty());
        assert!(publisher.trouble()[0].contains(&address.to_string()), "{publisher:?}");
        drop(other);
        publisher.publish(metrics("up 1\n".to_owned()));
        wait_until("it is served", || get_from(address).is_some_and(|text| text == "up 1\n"));
        assert_eq!(publisher.trouble(), Vec::<String>::new());
    }

    #[test]
    fn jobs_are_served_at_their_own_port_only() {
        let [metrics, jobs] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [listen, address] = [&metrics, &jobs].map(|free| free.local_addr().unwrap());
        drop((metrics, jobs));
        let config = MetricsConfig { file: None, listen: Some(listen), jobs: Some(address) };
        let publisher = Publisher::start(&config).unwrap();
        publisher.publish(Published { metrics: "up 1\n".to_owned(), jobs: "{}".to_owned() });
        wait_until("it is served", || page_of(address, "/jobs").is_some_and(|text| text == "{}"));
        wait_until("they are served", || get_from(listen).is_some_and(|text| text == "up 1\n"));
        assert_eq!(page_of(listen, "/jobs").as_deref(), Some("there is /metrics only\n"));
        assert_eq!(page_of(address, "/metrics").as_deref(), Some("there is /jobs only\n"));
    }

    #[test]
    fn clients_get_the_last_text_whatever_others_do() {
        let address = {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap()
        };
        let publisher = Publisher::start(&port(address)).unwrap();
        wait_until("it listens", || TcpStream::connect(address).is_ok());
        let _silent: Vec<_> = (0..3).filter_map(|_| TcpStream::connect(address).ok()).collect();
        for round in 0..3 {
            publisher.publish(metrics(format!("up {round}\n")));
            assert_eq!(get_from(address), Some(format!("up {round}\n")));
        }
    }
}
