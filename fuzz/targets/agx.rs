#![no_main]

#[allow(dead_code)]
#[path = "../../xtask/src/coverage/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::agx(data));
