//! CPU time of threads, so that figures do not depend on what else the machine does.

use std::time::Duration;

/// CPU time that this thread has used.
#[cfg(unix)]
pub fn thread_time() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
}

/// Without a thread clock: time that has passed since the first call.
#[cfg(not(unix))]
pub fn thread_time() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(unix)]
fn read(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; an invalid clock gives an error, not undefined behaviour.
    let ok = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    ok.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// CPU time of another thread; `None` where that cannot be asked.
#[cfg(target_os = "linux")]
pub(crate) fn time_of<T>(thread: &std::thread::JoinHandle<T>) -> Option<Duration> {
    use std::os::unix::thread::JoinHandleExt;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the thread has not been joined or detached while its handle exists, so its id is valid.
    let ok = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) } == 0;
    if ok { read(clock) } else { None }
}

/// CPU time of another thread; `None` where that cannot be asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn time_of<T>(_thread: &std::thread::JoinHandle<T>) -> Option<Duration> {
    None
}

/// Microseconds as figures have them.
pub fn micros(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_and_sleep_does_not() {
        let start = thread_time();
        std::thread::sleep(Duration::from_millis(30));
        let slept = thread_time() - start;
        let mut n = 1u64;
        while thread_time() - start < slept + Duration::from_millis(5) {
            n = std::hint::black_box(n.wrapping_mul(3));
        }
        assert!(cfg!(not(unix)) || slept < Duration::from_millis(20), "{slept:?}");
    }
}
