//! In which order threads that share a core are simulated. Nothing here knows a machine.

use crate::inputs::Random;

/// Which thread runs after one that waits (for a switch, a load, a barrier). Every choice is deterministic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// The next one, in turn.
    #[default]
    RoundRobin,
    /// The previous one, in turn.
    Reverse,
    /// The first one that does not wait: one after the other from barrier to barrier, as the interpreter does it.
    Sequential,
    /// Any one, by a pseudo-random sequence with this seed.
    Shuffled(u64),
}

/// Chooses among the threads of a group.
pub struct Chooser {
    order: Order,
    random: Random,
    count: usize,
    current: usize,
}

impl Chooser {
    /// `count`: threads. The first choice is the first thread, in reverse the last one.
    pub fn new(order: Order, count: usize) -> Chooser {
        let (seed, current) = match order {
            Order::Shuffled(seed) => (seed, 0),
            Order::Reverse => (0, 0),
            _ => (0, count.saturating_sub(1)),
        };
        Chooser { order, random: Random(seed), count, current }
    }

    /// The next one to run; `None` when none is runnable.
    pub fn choose(&mut self, runnable: impl Fn(usize) -> bool) -> Option<usize> {
        let count = self.count;
        if count == 0 {
            return None;
        }
        let begin = match self.order {
            Order::Sequential => 0,
            Order::RoundRobin => (self.current + 1) % count,
            Order::Reverse => (self.current + count - 1) % count,
            Order::Shuffled(_) => self.random.below(count as u64) as usize,
        };
        let turns = 0..count;
        let chosen = match self.order {
            Order::Reverse => turns.map(|k| (begin + count - k) % count).find(|&i| runnable(i)),
            _ => turns.map(|k| (begin + k) % count).find(|&i| runnable(i)),
        };
        self.current = chosen.unwrap_or(self.current);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(order: Order) -> Vec<usize> {
        let mut chooser = Chooser::new(order, 4);
        (0..5).filter_map(|_| chooser.choose(|i| i != 2)).collect()
    }

    #[test]
    fn orders() {
        assert_eq!(chosen(Order::RoundRobin), [0, 1, 3, 0, 1]);
        assert_eq!(chosen(Order::Reverse), [3, 1, 0, 3, 1]);
        assert_eq!(chosen(Order::Sequential), [0; 5]);
        assert_eq!(chosen(Order::Shuffled(7)), chosen(Order::Shuffled(7)));
        assert!(!chosen(Order::Shuffled(7)).contains(&2));
        assert_eq!(Chooser::new(Order::RoundRobin, 3).choose(|_| false), None);
        assert_eq!(Chooser::new(Order::Reverse, 0).choose(|_| true), None);
    }
}
