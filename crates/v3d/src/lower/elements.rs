//! Arrays of images and samplers. Their states are words of the uniform stream, not values, so an index that varies is compared
//! with one element after the other, and the access is made in the branch of the right one.

use super::*;
use kempe_ir::Res;
use smallvec::smallvec;

/// Most elements, or pairs of image and sampler, that an access chooses from.
const MOST_CHOICES: usize = 32;

/// Which element of an array of resources.
#[derive(Clone, Copy)]
pub(super) enum Element {
    Known(u32),
    /// With the number of elements.
    Variable(Value, u32),
}

impl Element {
    fn choices(self) -> std::ops::Range<u32> {
        match self {
            Element::Known(n) => n..n.saturating_add(1),
            Element::Variable(_, n) => 0..n,
        }
    }
}

impl Lower<'_> {
    pub(super) fn element(&self, res: Res, index: Option<Value>) -> Result<Element> {
        let Some(index) = index else { return Ok(Element::Known(0)) };
        if let Some(n) = self.e.value_of(index) {
            return Ok(Element::Known(n));
        }
        match self.m.resources.get(res).map_or(0, |r| r.elements) {
            0 => self.error("a variable index into an array of images without a size is not supported"),
            n => Ok(Element::Variable(index, n)),
        }
    }

    /// What `make` gives for the pair of elements that is meant. An index out of range means the last element.
    pub(super) fn choose(
        &mut self,
        [first, second]: [Element; 2],
        results: &[Type],
        mut make: impl FnMut(&mut Self, [u32; 2]) -> Result<SmallVec<[Value; 4]>>,
    ) -> Result<SmallVec<[Value; 4]>> {
        let count = first.choices().len().saturating_mul(second.choices().len());
        if count > MOST_CHOICES {
            return self.error(format!(
                "a variable index that chooses from {count} images: at most {MOST_CHOICES} are supported"
            ));
        }
        if count == 1 {
            return make(self, [first.choices().start, second.choices().start]);
        }
        let join = self.e.new_block();
        let joined = results.iter().map(|&ty| self.e.param(join, ty)).collect();
        let pairs = first.choices().flat_map(|a| second.choices().map(move |b| [a, b]));
        for (n, pair) in pairs.enumerate() {
            let last = n + 1 == count;
            let mut other = None;
            if !last {
                let cond = self.is_meant([first, second], pair);
                let (here, next) = (self.e.new_block(), self.e.new_block());
                let to = |block| Target { block, args: smallvec![] };
                self.e.end(Term::Branch { cond, then: to(here), els: to(next) });
                self.place(here);
                self.e.switch_to(here);
                other = Some(next);
            }
            let values = make(self, pair)?;
            self.e.jump(join, &values);
            if let Some(next) = other {
                self.place(next);
                self.e.switch_to(next);
            }
        }
        self.place(join);
        self.e.switch_to(join);
        Ok(joined)
    }

    fn is_meant(&mut self, elements: [Element; 2], pair: [u32; 2]) -> Value {
        let mut meant = None;
        for (element, k) in elements.into_iter().zip(pair) {
            if let Element::Variable(index, _) = element {
                let k = self.e.i(k);
                let same = self.e.ieq(index, k);
                meant = Some(match meant {
                    Some(m) => self.e.bool_op(Op::And, &[m, same]),
                    None => same,
                });
            }
        }
        meant.unwrap_or_else(|| self.e.b(true))
    }
}
