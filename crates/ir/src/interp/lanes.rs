//! The registers of a batch: one row of lanes per slot, with a bit per lane for undefined contents.

use crate::exec::LANES;

pub(super) type Row = [u64; LANES];
pub(super) type Mask = u16;

pub(super) const ALL: Mask = Mask::MAX;

#[derive(Clone)]
pub(super) struct Registers {
    rows: Vec<Row>,
    /// Lanes whose contents are undefined.
    poison: Vec<Mask>,
}

impl Registers {
    pub fn new(slots: u32) -> Registers {
        Registers { rows: vec![[0; LANES]; slots as usize], poison: vec![0; slots as usize] }
    }

    #[inline(always)]
    pub fn row(&self, slot: u32) -> &Row {
        &self.rows[slot as usize]
    }

    #[inline(always)]
    pub fn poison(&self, slot: u32) -> Mask {
        self.poison[slot as usize]
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub fn write(&mut self, slot: u32, mask: Mask, row: &Row, poison: Mask) {
        let to = &mut self.rows[slot as usize];
        if mask == ALL {
            *to = *row;
            self.poison[slot as usize] = poison;
            return;
        }
        for i in 0..LANES {
            if mask >> i & 1 != 0 {
                to[i] = row[i];
            }
        }
        let p = &mut self.poison[slot as usize];
        *p = *p & !mask | poison & mask;
    }

    pub fn set(&mut self, slot: u32, lane: usize, value: u64, poison: bool) {
        self.rows[slot as usize][lane] = value;
        let p = &mut self.poison[slot as usize];
        *p = *p & !(1 << lane) | (poison as Mask) << lane;
    }

    #[inline(always)]
    pub fn map1(&mut self, dst: u32, mask: Mask, a: u32, f: impl Fn(u64) -> u64) {
        let ra = &self.rows[a as usize];
        let mut out = [0; LANES];
        if mask == ALL {
            for i in 0..LANES {
                out[i] = f(ra[i]);
            }
        } else {
            for i in lanes(mask) {
                out[i] = f(ra[i]);
            }
        }
        let poison = self.poison[a as usize];
        self.write(dst, mask, &out, poison);
    }

    #[inline(always)]
    pub fn map2(&mut self, dst: u32, mask: Mask, a: u32, b: u32, f: impl Fn(u64, u64) -> u64) {
        let poison = self.poison[a as usize] | self.poison[b as usize];
        self.map2_poison(dst, mask, a, b, poison, f);
    }

    #[inline(always)]
    pub fn map2_poison(
        &mut self,
        dst: u32,
        mask: Mask,
        a: u32,
        b: u32,
        poison: Mask,
        f: impl Fn(u64, u64) -> u64,
    ) {
        let (ra, rb) = (&self.rows[a as usize], &self.rows[b as usize]);
        let mut out = [0; LANES];
        if mask == ALL {
            for i in 0..LANES {
                out[i] = f(ra[i], rb[i]);
            }
        } else {
            for i in lanes(mask) {
                out[i] = f(ra[i], rb[i]);
            }
        }
        self.write(dst, mask, &out, poison);
    }

    /// Undefined lanes of `a & b` or `a | b`, where a defined operand that decides the result by itself hides the
    /// other: all zero for `and`, all ones (`ones`, the mask of the type) for `or`.
    pub fn absorbed(&self, a: u32, b: u32, absorbing: u64) -> Mask {
        let (pa, pb) = (self.poison[a as usize], self.poison[b as usize]);
        if pa | pb == 0 {
            return 0;
        }
        let hides = |s: u32| {
            let row = &self.rows[s as usize];
            (0..LANES).fold(0, |m, i| m | ((row[i] == absorbing) as Mask) << i)
        };
        (pa | pb) & !(hides(a) & !pa) & !(hides(b) & !pb)
    }
}

/// The numbers of the lanes of a mask.
#[inline(always)]
pub(super) fn lanes(mut mask: Mask) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let i = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(i)
    })
}
