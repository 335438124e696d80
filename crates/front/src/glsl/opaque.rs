//! What glslang's relaxed rules get wrong about samplers and images: found in the result, so that it is an error and not wrong code.
//!
//! They take structures with samplers apart and make a variable of every sampler, named by its path. An index that is not a constant
//! becomes a part of that path (`s[n].map` is the one variable `s.n.map`), and every element of an array that is a parameter of a
//! function becomes the first (`map[0]`).

use crate::reader::{self, Res};
use rustc_hash::FxHashMap;
use spirv::{Op, StorageClass};

/// Names of the variables that are samplers, images or textures.
fn opaque_names(words: &[u32]) -> Res<Vec<String>> {
    let mut names: FxHashMap<u32, String> = FxHashMap::default();
    let mut out = Vec::new();
    let mut at = 5;
    while at < words.len() {
        let i = reader::inst(words, at)?;
        at += i.words.len();
        match Op::from_u32(u32::from(i.op)) {
            Some(Op::Name) => drop(names.insert(i.w(1)?, i.string(2)?.0)),
            Some(Op::Variable) if i.w(3)? == StorageClass::UniformConstant as u32 => {
                out.extend(names.remove(&i.w(2)?));
            }
            Some(Op::Function) => break,
            _ => {}
        }
    }
    Ok(out)
}

/// Whether a word stands between brackets anywhere.
fn indexes(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.split('[')
        .skip(1)
        .filter_map(|rest| rest.split(']').next())
        .any(|inner| inner.split(|c| !is_word(c)).any(|w| w == word))
}

/// What is wrong with a module that was made of a text by relaxed rules.
pub fn mistake(words: &[u32], text: &str) -> Option<&'static str> {
    let variable = |name: &String| {
        let parts: Vec<&str> = name.split('.').collect();
        let inner = parts.get(1..parts.len().saturating_sub(1)).unwrap_or_default();
        inner.iter().any(|p| !p.bytes().all(|b| b.is_ascii_digit()) && indexes(text, p))
    };
    let names = opaque_names(words).ok()?;
    if names.iter().any(variable) {
        return Some("structures that hold samplers or images are indexed by something that is not constant");
    }
    let parameter = |name: &String| name.ends_with(']');
    names.iter().any(parameter).then_some("an array of samplers or images is a parameter of a function")
}

#[cfg(test)]
mod tests {
    use super::indexes;

    #[test]
    fn words_between_brackets() {
        assert!(indexes("a[i + n].x", "n") && indexes("b[a[n]]", "n"));
        assert!(!indexes("a[in].n", "n") && !indexes("n", "n") && !indexes("", "n"));
    }
}
