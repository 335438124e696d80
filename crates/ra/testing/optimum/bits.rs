//! Sets of units, apart from the allocator's own.

use kempe_ra::Unit;

/// Up to 256 units.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bits([u64; 4]);

impl Bits {
    pub fn of<'a>(units: impl IntoIterator<Item = &'a Unit>) -> Bits {
        let mut bits = Bits::default();
        units.into_iter().for_each(|unit| bits.insert(*unit));
        bits
    }

    pub fn insert(&mut self, unit: Unit) {
        self.0[unit.0 as usize / 64] |= 1 << (unit.0 % 64);
    }

    pub fn contains(&self, unit: Unit) -> bool {
        self.0[unit.0 as usize / 64] >> (unit.0 % 64) & 1 != 0
    }

    fn zip(&self, other: &Bits, f: impl Fn(u64, u64) -> u64) -> Bits {
        Bits(std::array::from_fn(|k| f(self.0[k], other.0[k])))
    }

    pub fn or(&self, other: &Bits) -> Bits {
        self.zip(other, |a, b| a | b)
    }

    pub fn and(&self, other: &Bits) -> Bits {
        self.zip(other, |a, b| a & b)
    }

    pub fn minus(&self, other: &Bits) -> Bits {
        self.zip(other, |a, b| a & !b)
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub fn within(&self, other: &Bits) -> bool {
        self.minus(other).is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Unit> {
        (0..256).map(Unit).filter(|unit| self.contains(*unit))
    }

    /// How many aligned runs of `size` units lie inside.
    pub fn windows(&self, size: u32) -> u32 {
        let align = size.next_power_of_two() as u16;
        let whole = |base: u16| (base..base + size as u16).all(|u| u < 256 && self.contains(Unit(u)));
        (0..256u16).step_by(align as usize).filter(|base| whole(*base)).count() as u32
    }
}
