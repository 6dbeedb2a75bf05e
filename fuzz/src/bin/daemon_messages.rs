//! Messages between the daemon and its clients, from either side.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_wire::{Call, FrameBuffer, Reply, Request, Status, to_frame};

fuzz_target!(|bytes: &[u8]| {
    let mut buffer = FrameBuffer::default();
    // As a socket gives them: in pieces.
    for piece in bytes.chunks(97) {
        buffer.push(piece);
        while let Ok(Some(frame)) = buffer.next_frame() {
            one(&frame);
        }
    }
});

fn one(frame: &[u8]) {
    if let Ok(request) = Call::from_frame(frame)
        .map_err(drop)
        .and_then(|call| Request::from_call(call).map_err(drop))
    {
        // JSON may be longer when it is written with escapes.
        if let Ok(written) = to_frame(&request.clone().into_call()) {
            let (_, written) = written.split_last().expect("a zero byte");
            let again = Call::from_frame(written).expect("what was written is a call");
            assert_eq!(Request::from_call(again).expect("of the same method"), request);
        }
    }
    if let Ok(reply) = Reply::from_frame(frame) {
        if let Err(failure) = reply.into_results::<Status>() {
            let again = Reply::from(failure.clone()).into_results::<Status>();
            assert_eq!(again.expect_err("a failure"), failure);
        }
    }
}
