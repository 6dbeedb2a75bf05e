//! Clients that misbehave.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;

use crate::service::{Service, pipes};
use crate::test_folder::{TIMEOUT, stderr, wait_until};
use crate::trials::trial;
use crate::user::User;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("oversized_truncated_and_random_messages_are_refused", messages),
        trial("a_users_thousand_connections_leave_room_for_others", connections),
        trial("a_call_without_a_descriptor_is_refused", no_descriptor),
    ]
}

fn connect(service: &Service) -> UnixStream {
    let stream = UnixStream::connect(service.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// What comes back until the daemon closes the connection, or an answer is complete.
fn answer(mut stream: UnixStream, sent: &[u8]) -> String {
    // It may be closed while this is still writing.
    let _ = stream.write_all(sent);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn messages() {
    let service = Service::start("stay");
    let oversized = vec![b'x'; 200_000];
    let zeros = vec![0; 10_000];
    let mut random: Vec<u8> = Vec::new();
    let mut state = 1u32;
    for _ in 0..50_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random.extend_from_slice(&state.to_le_bytes()[2..]);
    }
    for bytes in [&oversized[..], b"{\"method\":", b"nonsense\0", &zeros, &random, b"[]\0", b"\"\0"]
    {
        answer(connect(&service), bytes);
        assert!(service.client(&["status"]).status.success(), "{}", service.log());
    }
    let answered = answer(connect(&service), b"{\"method\":\"io.symbiont.Manager.Dance\"}\0");
    assert!(answered.contains("org.varlink.service.MethodNotFound"), "{answered}");
    let answered = answer(connect(&service), b"{\"method\":\"org.varlink.service.GetInfo\"}\0");
    assert!(answered.contains("io.symbiont.Manager"), "{answered}");
    assert!(service.log().contains("longer than"), "{}", service.log());
}

/// Connects a thousand times and asks nothing; reports, as JSON, how many connections were refused
/// and the replies that those got. Holds the others until its standard input ends.
const GREEDY: &str = r#"
import json, select, socket, sys
held, refused, words = [], 0, set()
for _ in range(1000):
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    held.append(client)
    while True:
        ready = select.select([held[-1]], [], [], 60 if len(held) > 64 else 0)[0]
        if not ready:
            break
        client, text = held.pop(), b''
        while part := client.recv(4096):
            text += part
        refused += 1
        words.add(text.decode())
        break
print(json.dumps({"held": len(held), "refused": refused, "words": sorted(words)}), flush=True)
sys.stdin.read()
"#;

fn connections() {
    let service = Service::start("stay");
    let Some(user) = User::of(&service, 1) else { return };
    let Some(other) = User::of(&service, 2) else { return };
    let mut greedy = user.command("python3");
    greedy.args(["-c", GREEDY]).arg(service.socket()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut greedy = service.place.start(&mut greedy);
    let (input, mut output) = pipes(&mut greedy);
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(&mut output).read_line(&mut line).map(|_| sender.send(line))
    });
    let line = loop {
        let asked = Instant::now();
        let status = service.client(&["status"]);
        assert!(status.status.success(), "root is served meanwhile: {}", stderr(&status));
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => break line,
            Err(_) => assert!(asked.elapsed() < TIMEOUT, "it never connects"),
        }
    };
    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&said["held"], &said["refused"]), (&64.into(), &936.into()), "{said}");
    let words = said["words"].as_array().unwrap();
    assert_eq!(words.len(), 1, "one answer, whole, to each: {said}");
    let answer = words[0].as_str().unwrap().strip_suffix('\0').expect("one message");
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["error"], "io.symbiont.Manager.QuotaExceeded");

    let refused = user.client(&["status"]);
    assert!(!refused.status.success());
    let why = "symbiont: symbiontd cannot be asked: too many connections: a user may have 64\n";
    assert_eq!(stderr(&refused), why);
    assert!(service.client(&["status"]).status.success(), "root is served");
    assert!(other.client(&["status"]).status.success(), "another user is served");
    let refusals = service.log().matches("too many connections").count();
    assert!(refusals <= 20, "the log is not flooded: {}", service.log());
    drop(input);
    assert!(greedy.wait().success());
    wait_until("the user is served again", || user.client(&["status"]).status.success());
}

fn no_descriptor() {
    let service = Service::start("stay");
    let call = b"{\"method\":\"io.symbiont.Manager.Attach\",\"parameters\":{\"name\":\"x\"}}\0";
    let answered = answer(connect(&service), call);
    assert!(answered.contains("pidfd"), "{answered}");
    assert!(service.programs().is_empty());
}
