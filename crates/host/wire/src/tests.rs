use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn frames_of(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut buffer = FrameBuffer::default();
    let mut frames = Vec::new();
    for chunk in chunks {
        buffer.push(chunk);
        while let Some(frame) = buffer.next_frame().unwrap() {
            frames.push(frame);
        }
    }
    assert!(!buffer.is_within_a_frame());
    frames
}

fn requests() -> Vec<Request> {
    vec![
        Request::GetInfo {},
        Request::GetInterfaceDescription { interface: INTERFACE_NAME.into() },
        Request::Enrol {
            name: "make".into(),
            policy: Some("phases".into()),
            linger: true,
            class: Some("latency".into()),
            job: Some(1 << 40),
            user: Some(1000),
            identity: Some("ab01".into()),
        },
        Request::Enrol {
            name: "zero \0 within".into(),
            policy: None,
            linger: false,
            class: None,
            job: None,
            user: None,
            identity: None,
        },
        Request::Attach { name: "mysqld".into(), class: Some("batch".into()) },
        Request::Detach {},
        Request::Status {},
        Request::Snapshot {},
        Request::Why { id: 4711 },
        Request::Reload {},
    ]
}

fn failures() -> Vec<Failure> {
    vec![
        Failure::NotPermitted { reason: "process 1 belongs to user 0".into() },
        Failure::NotManaged { what: "thread 7".into() },
        Failure::PolicyConflict { running: "auto".into(), asked: "random".into() },
        Failure::QuotaExceeded { what: "programs".into(), limit: 256 },
        Failure::Refused { reason: "one hardware thread only".into() },
        Failure::Protocol { reason: "no parameter 'name'".into() },
        Failure::MethodNotFound { method: "io.symbiont.Manager.Dance".into() },
    ]
}

#[test]
fn requests_survive_the_wire() {
    for request in requests() {
        let bytes = to_frame(&request.clone().into_call()).unwrap();
        let [frame] = &frames_of(&[&bytes])[..] else { panic!("one frame for {request:?}") };
        assert_eq!(Request::from_call(Call::from_frame(frame).unwrap()).unwrap(), request);
    }
}

#[test]
fn failures_survive_the_wire() {
    for failure in failures() {
        let bytes = to_frame(&Reply::from(failure.clone())).unwrap();
        let [frame] = &frames_of(&[&bytes])[..] else { panic!("one frame for {failure:?}") };
        let read: Result<Enrolled, Failure> = Reply::from_frame(frame).unwrap().into_results();
        assert_eq!(read.unwrap_err(), failure);
    }
}

#[test]
fn results_survive_the_wire() {
    let results = Enrolled { program: 3, notes: vec!["cpu 7 is offline".into()] };
    let bytes = to_frame(&Reply::of(&results)).unwrap();
    let read: Enrolled =
        Reply::from_frame(&frames_of(&[&bytes])[0]).unwrap().into_results().unwrap();
    assert_eq!(read, results);
    let other: Result<Attached, Failure> = Reply::of(&results).into_results();
    assert!(matches!(other, Err(Failure::Protocol { .. })));
}

#[test]
fn an_unknown_error_is_quoted() {
    let failure = Failure::from_parts("io.symbiont.Manager.Tired", Map::new());
    assert!(failure.to_string().contains("io.symbiont.Manager.Tired"), "{failure}");
}

#[test]
fn missing_and_wrong_parameters_are_refused() {
    for parameters in [json!({}), json!({ "name": 3 }), json!({ "name": null })] {
        let parameters = parameters.as_object().unwrap().clone();
        let method = format!("{INTERFACE_NAME}.Attach");
        let call = Call { method, parameters, more: false, oneway: false };
        assert!(matches!(Request::from_call(call), Err(Failure::Protocol { .. })));
    }
    for method in ["", "Status", "io.symbiont.Manager.", "io.symbiont.Other.Status"] {
        let call =
            Call { method: method.into(), parameters: Map::new(), more: false, oneway: false };
        assert!(matches!(Request::from_call(call), Err(Failure::MethodNotFound { .. })));
    }
}

#[test]
fn an_endless_frame_is_refused() {
    let mut buffer = FrameBuffer::default();
    buffer.push(&vec![b' '; MOST_BYTES]);
    assert_eq!(buffer.next_frame(), Ok(None));
    buffer.push(b" ");
    assert_eq!(buffer.next_frame(), Err(FrameTooLong));
    let name = "x".repeat(MOST_BYTES);
    assert_eq!(to_frame(&Request::Attach { name, class: None }.into_call()), Err(FrameTooLong));
}

#[test]
fn the_longest_frame_is_read() {
    let mut bytes = vec![b' '; MOST_BYTES];
    bytes.push(0);
    assert_eq!(frames_of(&[&bytes]).first().map(Vec::len), Some(MOST_BYTES));
}

/// The names in parentheses after `head`, at the first level.
fn described(head: &str) -> Vec<String> {
    let text: String =
        INTERFACE.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join(" ");
    let (_, after) = text.split_once(head).unwrap_or_else(|| panic!("no {head} in the interface"));
    let inside = after.split_once('(').unwrap().1.split_once(')').unwrap().0;
    let fields = inside.split(',').filter_map(|field| field.split_once(':'));
    fields.map(|(name, _)| name.trim().to_owned()).collect()
}

#[test]
fn the_description_names_each_method_and_error() {
    for request in requests() {
        let call = request.into_call();
        let Some(method) = call.method.strip_prefix(INTERFACE_NAME) else { continue };
        let described = described(&format!("method {}", &method[1..]));
        for name in call.parameters.keys() {
            assert!(described.contains(name), "{method}: {name}");
        }
    }
    for failure in failures() {
        let (name, parameters) = failure.into_parts();
        let Some(name) = name.strip_prefix(INTERFACE_NAME) else { continue };
        let described = described(&format!("error {}", &name[1..]));
        let given: Vec<_> = parameters.keys().cloned().collect();
        assert_eq!(described.len(), given.len(), "{name}");
        assert!(given.iter().all(|field| described.contains(field)), "{name}");
    }
}

proptest! {
    #[test]
    fn frames_do_not_depend_on_how_bytes_arrive(
        frames in prop::collection::vec(prop::collection::vec(1u8.., 0..40), 0..6),
        cuts in prop::collection::vec(0usize..256, 0..8),
    ) {
        let bytes: Vec<u8> = frames.iter().flat_map(|f| f.iter().copied().chain([0])).collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        prop_assert_eq!(frames_of(&chunks), frames);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut buffer = FrameBuffer::default();
        buffer.push(&bytes);
        while let Ok(Some(frame)) = buffer.next_frame() {
            let _ = Call::from_frame(&frame).map(Request::from_call);
            let _ = Reply::from_frame(&frame).map(Reply::into_results::<Status>);
        }
    }
}
