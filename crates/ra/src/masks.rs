//! A set of units as a fixed bit mask. Register files up to [`MAX_UNITS`] units are supported; the largest planned
//! one has 256 half registers plus a few flags.

use crate::problem::Unit;

const WORDS: usize = 6;

/// Most units a register file may have.
pub const MAX_UNITS: usize = WORDS * 64;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct UnitMask([u64; WORDS]);

impl UnitMask {
    pub const EMPTY: UnitMask = UnitMask([0; WORDS]);

    pub fn of(units: &[Unit]) -> UnitMask {
        let mut mask = UnitMask::EMPTY;
        for &unit in units {
            mask.insert(unit);
        }
        mask
    }

    pub fn single(unit: Unit) -> UnitMask {
        UnitMask::of(&[unit])
    }

    /// `count` units from `first` on.
    pub fn run(first: Unit, count: u32) -> UnitMask {
        let mut mask = UnitMask::EMPTY;
        for k in first.0 as usize..(first.0 as usize + count as usize).min(MAX_UNITS) {
            mask.insert(Unit(k as u16));
        }
        mask
    }

    #[inline]
    pub fn insert(&mut self, unit: Unit) {
        self.0[unit.0 as usize / 64] |= 1 << (unit.0 % 64);
    }

    #[inline]
    pub fn remove(&mut self, unit: Unit) {
        self.0[unit.0 as usize / 64] &= !(1 << (unit.0 % 64));
    }

    #[inline]
    pub fn contains(&self, unit: Unit) -> bool {
        let word = unit.0 as usize / 64;
        word < WORDS && self.0[word] >> (unit.0 % 64) & 1 != 0
    }

    #[inline]
    pub fn and(&self, other: &UnitMask) -> UnitMask {
        let mut out = *self;
        for k in 0..WORDS {
            out.0[k] &= other.0[k];
        }
        out
    }

    #[inline]
    pub fn or(&self, other: &UnitMask) -> UnitMask {
        let mut out = *self;
        for k in 0..WORDS {
            out.0[k] |= other.0[k];
        }
        out
    }

    #[inline]
    pub fn minus(&self, other: &UnitMask) -> UnitMask {
        let mut out = *self;
        for k in 0..WORDS {
            out.0[k] &= !other.0[k];
        }
        out
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    #[inline]
    pub fn intersects(&self, other: &UnitMask) -> bool {
        (0..WORDS).any(|k| self.0[k] & other.0[k] != 0)
    }

    #[inline]
    pub fn is_subset_of(&self, other: &UnitMask) -> bool {
        (0..WORDS).all(|k| self.0[k] & !other.0[k] == 0)
    }

    #[inline]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub fn first(&self) -> Option<Unit> {
        self.iter().next()
    }

    pub fn iter(&self) -> Units {
        Units { mask: *self, word: 0 }
    }
}

/// The units of a mask in ascending order.
pub(crate) struct Units {
    mask: UnitMask,
    word: usize,
}

impl Iterator for Units {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        while self.word < WORDS {
            let bits = self.mask.0[self.word];
            if bits != 0 {
                self.mask.0[self.word] = bits & (bits - 1);
                return Some(Unit((self.word * 64) as u16 + bits.trailing_zeros() as u16));
            }
            self.word += 1;
        }
        None
    }
}
