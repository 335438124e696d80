//! Running a compile so that nothing it does can hurt the caller: on a thread of its own with a large stack, with a
//! limit on time and on memory, and with panics caught.
//!
//! Rust cannot stop a thread from outside. [`Allocator`] makes the memory limit exact and stops abandoned threads at
//! their next allocation: a program that wants both installs it as its global allocator, as the command does. Without
//! it the memory limit is only noticed where the system tells how much memory a process has, and an abandoned thread
//! runs on until it is done.

use crate::clock;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Once};
use std::thread;
use std::time::{Duration, Instant};

/// What one compile may use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// CPU time (where the system has no clock for threads: time on the wall).
    pub time: Duration,
    /// Bytes held at any moment.
    pub memory: u64,
}

impl Default for Limits {
    /// 60 s and 4 GiB.
    fn default() -> Limits {
        Limits { time: Duration::from_secs(60), memory: 4 << 30 }
    }
}

/// Why something did not come to its end.
#[derive(Clone, PartialEq, Debug)]
pub enum Stopped {
    /// The time limit.
    Time(Duration),
    /// The memory limit in bytes.
    Memory(u64),
    /// It panicked: place and message, and behind a line feed the call stack if `RUST_BACKTRACE` asks for it.
    Panic(String),
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stopped::Time(limit) => write!(f, "time limit of {} s reached", limit.as_secs_f64()),
            Stopped::Memory(limit) if limit % (1 << 20) == 0 => {
                write!(f, "memory limit of {} MiB reached", limit >> 20)
            }
            Stopped::Memory(limit) => write!(f, "memory limit of {limit} bytes reached"),
            Stopped::Panic(report) => f.write_str(report),
        }
    }
}

/// Stack of a guarded thread: deeply nested input must not overflow it. Only touched pages cost memory.
const STACK: usize = 256 << 20;

/// How often the limits are looked at.
const POLL: Duration = Duration::from_millis(20);

/// A thread that waits instead of computing uses no CPU time: this many times the limit may pass on the wall.
const WALL_FACTOR: u32 = 10;

/// What a guarded thread holds.
struct Account {
    held: AtomicI64,
    limit: i64,
    /// It asked for more than the limit.
    exceeded: AtomicBool,
    /// Nobody waits for it any more.
    abandoned: AtomicBool,
}

thread_local! {
    static ACCOUNT: Cell<*const Account> = const { Cell::new(std::ptr::null()) };
    static CAPTURE: Cell<bool> = const { Cell::new(false) };
    static REPORT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The system's allocator, counting what guarded threads hold; see the head of this file.
pub struct Allocator;

/// Counts; does not return when the thread may not go on. Sleeping is the one way to stop that neither unwinds out of
/// an allocator nor takes the process with it.
#[inline]
fn charge(bytes: i64) {
    // During the end of a thread its variables may be gone: then nothing is counted.
    let account = ACCOUNT.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: set only by `guarded`, for as long as the account lives.
    let Some(account) = (unsafe { account.as_ref() }) else { return };
    // Only this thread writes the figure.
    let held = account.held.load(Ordering::Relaxed) + bytes;
    account.held.store(held, Ordering::Relaxed);
    if bytes > 0 && (held > account.limit || account.abandoned.load(Ordering::Relaxed)) {
        stop(account);
    }
}

#[cold]
fn stop(account: &Account) -> ! {
    account.exceeded.store(true, Ordering::Release);
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX / 2)
}

// SAFETY: everything is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        charge(signed(layout.size()));
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        charge(signed(layout.size()));
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        charge(-signed(layout.size()));
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        charge(signed(size) - signed(layout.size()));
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Bytes of memory that the process has in use, if the system tells.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Keeps the message of a panic of this thread instead of printing it. Other threads keep the hook that was there.
fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CAPTURE.try_with(Cell::get).unwrap_or(false) {
                return previous(info);
            }
            let payload = info.payload();
            let message = payload
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            let place =
                info.location().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()));
            let mut report = format!("panic{place}: {message}");
            let stack = std::backtrace::Backtrace::capture();
            if stack.status() == std::backtrace::BacktraceStatus::Captured {
                report.push_str(&format!("\n{stack}"));
            }
            REPORT.with(|slot| *slot.borrow_mut() = Some(report));
        }));
    });
}

/// Runs `f` on a thread of its own. When a limit is reached the thread is left behind; it stops at its next allocation
/// if [`Allocator`] is installed.
///
/// # Errors
/// When a limit was reached or `f` panicked.
pub fn guarded<T: Send + 'static>(
    limits: Limits,
    f: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stopped> {
    install_hook();
    let account = Arc::new(Account {
        held: AtomicI64::new(0),
        limit: i64::try_from(limits.memory).unwrap_or(i64::MAX),
        exceeded: AtomicBool::new(false),
        abandoned: AtomicBool::new(false),
    });
    let (send, receive) = sync_channel(1);
    let inner = Arc::clone(&account);
    let run = move || {
        CAPTURE.set(true);
        ACCOUNT.set(Arc::as_ptr(&inner));
        let result = panic::catch_unwind(AssertUnwindSafe(f)).map_err(|_| {
            let report = REPORT.with(|slot| slot.borrow_mut().take());
            Stopped::Panic(report.unwrap_or_else(|| "panic without a report".to_owned()))
        });
        ACCOUNT.set(std::ptr::null());
        // Nobody listens when the thread was given up.
        let _ = send.send(result);
    };
    let before = resident();
    let worker = match thread::Builder::new().name("compile".to_owned()).stack_size(STACK).spawn(run) {
        Ok(worker) => worker,
        Err(error) => return Err(Stopped::Panic(format!("no thread could be started: {error}"))),
    };
    let start = Instant::now();
    loop {
        match receive.recv_timeout(POLL) {
            Ok(result) => {
                // The thread has nothing left to do but to end.
                let _ = worker.join();
                return result;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Stopped::Panic("the thread ended without a result".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let wall = start.elapsed();
        let cpu = clock::time_of(&worker);
        let late = cpu.unwrap_or(wall) > limits.time || wall > limits.time.saturating_mul(WALL_FACTOR);
        let grown = before.zip(resident()).is_some_and(|(a, b)| b.saturating_sub(a) > limits.memory);
        let stopped = if account.exceeded.load(Ordering::Acquire) || grown {
            Stopped::Memory(limits.memory)
        } else if late {
            Stopped::Time(limits.time)
        } else {
            continue;
        };
        account.abandoned.store(true, Ordering::Relaxed);
        return Err(stopped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    fn limits(millis: u64, memory: u64) -> Limits {
        Limits { time: Duration::from_millis(millis), memory }
    }

    #[test]
    fn results_come_back() {
        assert_eq!(guarded(Limits::default(), || vec![1, 2, 3]), Ok(vec![1, 2, 3]));
    }

    #[test]
    fn a_panic_becomes_a_report() {
        let n = std::hint::black_box(7);
        let result = guarded(Limits::default(), move || assert!(n != 7, "the {n} is wrong"));
        let Err(Stopped::Panic(report)) = result else { panic!("no panic reported") };
        assert!(report.contains("the 7 is wrong") && report.contains("limits.rs"), "{report}");
    }

    #[test]
    fn an_endless_loop_is_given_up() {
        let done = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&done);
        let result = guarded(limits(50, 1 << 30), move || {
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(20) {
                // An abandoned thread stops here.
                std::hint::black_box(vec![0u8; 100]);
            }
            flag.store(true, Ordering::Relaxed);
        });
        assert_eq!(result, Err(Stopped::Time(Duration::from_millis(50))));
        assert!(!done.load(Ordering::Relaxed));
    }

    #[test]
    fn a_thread_that_waits_is_given_up() {
        let result = guarded(limits(20, 1 << 30), || thread::sleep(Duration::from_secs(30)));
        assert_eq!(result, Err(Stopped::Time(Duration::from_millis(20))));
    }

    #[test]
    fn memory_is_counted_to_the_byte() {
        let result = guarded(limits(10_000, 1 << 20), || {
            let mut kept = Vec::new();
            for _ in 0..1000 {
                kept.push(vec![1u8; 1 << 16]);
            }
            kept.len()
        });
        assert_eq!(result, Err(Stopped::Memory(1 << 20)));
        // The same amount in all, but never held together.
        let result = guarded(limits(10_000, 1 << 20), || {
            (0..1000).map(|_| std::hint::black_box(vec![1u8; 1 << 16]).len()).sum::<usize>()
        });
        assert_eq!(result, Ok(1000 << 16));
    }

    #[test]
    fn the_stack_is_deep() {
        fn sink(n: u32) -> u32 {
            let a = std::hint::black_box([n; 64]);
            if n == 0 { 0 } else { sink(n - 1) + a[63] - n + 1 }
        }
        assert_eq!(guarded(Limits::default(), || sink(200_000)), Ok(200_000));
    }
}
