//! Matrices from words: `perspective 45 1 0.1 20 * look 0 2 5 0 0 0 * rotate_y 30`.
//!
//! Clip space is that of Vulkan: y downwards, depth from 0 to 1. A product applies its last factor first. `inverse` in front of
//! the words inverts all of it, `normal` gives the matrix for normals.

/// By columns.
pub type Matrix = [f64; 16];

const ONE: Matrix = [1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1.];

/// Most factors of a product.
const MAX_FACTORS: usize = 32;

/// The matrix that a text describes.
///
/// # Errors
/// The first word that means nothing.
pub fn parse(text: &str) -> Result<Matrix, String> {
    let text = text.trim();
    for (word, what) in [("inverse", inverse as fn(Matrix) -> Option<Matrix>), ("normal", normal)] {
        if let Some(rest) = text.strip_prefix(word) {
            return what(parse(rest)?).ok_or_else(|| format!("`{rest}` has no inverse"));
        }
    }
    let mut out = ONE;
    for (n, factor) in text.split('*').enumerate() {
        if n >= MAX_FACTORS {
            return Err(format!("more than {MAX_FACTORS} factors"));
        }
        out = product(&out, &one(factor)?);
    }
    Ok(out)
}

fn one(text: &str) -> Result<Matrix, String> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let numbers: Option<Vec<f64>> = words.map(|w| w.parse().ok().filter(|x: &f64| x.is_finite())).collect();
    let Some(n) = numbers else { return Err(format!("`{}`: numbers follow the name", text.trim())) };
    let count = match name {
        "identity" => 0,
        "rotate_x" | "rotate_y" | "rotate_z" => 1,
        "translate" => 3,
        "scale" if n.len() == 1 => 1,
        "scale" => 3,
        "perspective" => 4,
        "ortho" => 6,
        "look" => 6,
        _ => return Err(format!("`{name}` makes no matrix")),
    };
    if n.len() != count {
        return Err(format!("`{name}` takes {count} numbers, not {}", n.len()));
    }
    let mut m = ONE;
    let (sin, cos) = n.first().map_or((0.0, 1.0), |a| (libm::sin(a.to_radians()), libm::cos(a.to_radians())));
    match name {
        "rotate_x" => (m[5], m[6], m[9], m[10]) = (cos, sin, -sin, cos),
        "rotate_y" => (m[0], m[2], m[8], m[10]) = (cos, -sin, sin, cos),
        "rotate_z" => (m[0], m[1], m[4], m[5]) = (cos, sin, -sin, cos),
        "translate" => m[12..15].copy_from_slice(&n),
        "scale" => {
            for k in 0..3 {
                m[5 * k] = n[k % n.len()];
            }
        }
        // Angle from bottom to top, width by height, near, far.
        "perspective" => {
            let f = 1.0 / libm::tan(n[0].to_radians() / 2.0);
            let (near, far) = (n[2], n[3]);
            m = [0.0; 16];
            (m[0], m[5], m[11]) = (f / n[1], -f, -1.0);
            (m[10], m[14]) = (far / (near - far), near * far / (near - far));
        }
        // Left, right, bottom, top, near, far.
        "ortho" => {
            (m[0], m[12]) = (2.0 / (n[1] - n[0]), -(n[1] + n[0]) / (n[1] - n[0]));
            (m[5], m[13]) = (-2.0 / (n[3] - n[2]), (n[3] + n[2]) / (n[3] - n[2]));
            (m[10], m[14]) = (-1.0 / (n[5] - n[4]), -n[4] / (n[5] - n[4]));
        }
        // From a place to another one, y upwards.
        "look" => {
            let unit = |v: [f64; 3]| {
                let length = libm::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
                v.map(|x| x / length)
            };
            let cross = |a: [f64; 3], b: [f64; 3]| {
                [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
            };
            let back = unit([n[0] - n[3], n[1] - n[4], n[2] - n[5]]);
            let up = if back[1].abs() > 0.999 { [0.0, 0.0, -1.0] } else { [0.0, 1.0, 0.0] };
            let right = unit(cross(up, back));
            let up = cross(back, right);
            for (row, axis) in [right, up, back].iter().enumerate() {
                for k in 0..3 {
                    m[4 * k + row] = axis[k];
                }
                m[12 + row] = -(0..3).map(|k| axis[k] * n[k]).sum::<f64>();
            }
        }
        _ => {}
    }
    if m.iter().all(|x| x.is_finite()) { Ok(m) } else { Err(format!("`{}` is no matrix", text.trim())) }
}

pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = [0.0; 16];
    for column in 0..4 {
        for row in 0..4 {
            out[4 * column + row] = (0..4).map(|k| a[4 * k + row] * b[4 * column + k]).sum();
        }
    }
    out
}

/// The inverse, by elimination.
fn inverse(m: Matrix) -> Option<Matrix> {
    let (mut a, mut out) = (m, ONE);
    for k in 0..4 {
        let pivot = (k..4).max_by(|&i, &j| a[4 * k + i].abs().total_cmp(&a[4 * k + j].abs()))?;
        for c in 0..4 {
            a.swap(4 * c + k, 4 * c + pivot);
            out.swap(4 * c + k, 4 * c + pivot);
        }
        let p = a[5 * k];
        if p == 0.0 || !p.is_finite() {
            return None;
        }
        for c in 0..4 {
            a[4 * c + k] /= p;
            out[4 * c + k] /= p;
        }
        for row in (0..4).filter(|row| *row != k) {
            let f = a[4 * k + row];
            for c in 0..4 {
                a[4 * c + row] -= f * a[4 * c + k];
                out[4 * c + row] -= f * out[4 * c + k];
            }
        }
    }
    Some(out)
}

/// Inverse and transposed, without what moves.
fn normal(m: Matrix) -> Option<Matrix> {
    let i = inverse(m)?;
    let mut out = ONE;
    for column in 0..3 {
        for row in 0..3 {
            out[4 * column + row] = i[4 * row + column];
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(m: &Matrix, p: [f64; 3]) -> [f64; 3] {
        let row = |r: usize| m[r] * p[0] + m[4 + r] * p[1] + m[8 + r] * p[2] + m[12 + r];
        [0, 1, 2].map(|r| row(r) / row(3))
    }

    fn near(a: [f64; 3], b: [f64; 3]) {
        assert!((0..3).all(|k| (a[k] - b[k]).abs() < 1e-9), "{a:?} {b:?}");
    }

    #[test]
    fn words_make_matrices() {
        let m = parse("translate 1 0 0 * rotate_z 90 * scale 2").unwrap();
        near(apply(&m, [1.0, 0.0, 0.0]), [1.0, 2.0, 0.0]);
        let m = parse("perspective 90 1 1 3 * look 0 0 5 0 0 0").unwrap();
        near(apply(&m, [0.0, 0.0, 4.0]), [0.0, 0.0, 0.0]);
        near(apply(&m, [0.0, 0.0, 2.0]), [0.0, 0.0, 1.0]);
        near(apply(&m, [4.0, 4.0, 1.0]), [1.0, -1.0, 1.125]);
        let m = parse("ortho -2 2 -1 1 0 10").unwrap();
        near(apply(&m, [2.0, 1.0, -10.0]), [1.0, -1.0, 1.0]);
        let m = product(
            &parse("inverse translate 1 2 3 * rotate_x 20").unwrap(),
            &parse("translate 1 2 3 * rotate_x 20").unwrap(),
        );
        near(apply(&m, [3.0, 4.0, 5.0]), [3.0, 4.0, 5.0]);
        let m = parse("normal translate 5 5 5 * scale 2 1 1").unwrap();
        near(apply(&m, [1.0, 1.0, 0.0]), [0.5, 1.0, 0.0]);
        for bad in [
            "",
            "turn 3",
            "scale",
            "scale x",
            "rotate_x 1 2",
            "inverse scale 0",
            "look 0 0 0 0 0 0",
            "scale nan",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
