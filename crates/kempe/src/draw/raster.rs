//! From clip-space corners to quads of fragments.
//!
//! Where a pixel lies is decided in fixed point, [`STEPS`] per pixel, exactly; edges follow the top-left rule, centres of pixels
//! are at halves. What is interpolated is not cut by clipping: it is computed from the triangle as it was, in homogeneous
//! coordinates. For a place (x, y) on the screen there are weights e with
//!
//! ```text
//! e0 (X0, Y0, w0) + e1 (X1, Y1, w1) + e2 (X2, Y2, w2) = (x, y, 1)      X, Y: screen coordinates times w
//! ```
//!
//! which are linear in x and y. So 1 / w of the fragment is e0 + e1 + e2, depth is the mean of z with them, and of a varying v
//! the difference to its value at the first corner, over w, is `P = e1 (v1 - v0) + e2 (v2 - v0)`: linear on the screen, zero at
//! the first corner, and `P * W + v0` is v in perspective. Without perspective the weights are e times w of the corner.
//!
//! Everything is computed in f64 and rounded to f32 once, where a program can see it.

use kempe_ir::io::Interpolation;

/// Fixed-point steps per pixel.
pub const STEPS: u32 = 64;

/// How far outside of the screen corners may lie, in half screens, before they are cut.
const GUARD: f64 = 4.0;

/// Least w of what is drawn.
const LEAST_W: f64 = 1e-6;

/// A corner after the vertex shader.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Corner {
    pub clip: [f32; 4],
    /// Its place on the screen in fixed point, if the vertex program computed it.
    pub screen: Option<[i32; 2]>,
}

/// Which triangles are left out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Cull {
    #[default]
    None,
    Back,
    Front,
}

/// A triangle that is ready for its pixels.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// Counter-clockwise on the screen.
    pub front: bool,
    /// Weights: e of corner k at (x, y) is `weights[k]` times (x, y, 1).
    weights: [[f64; 3]; 3],
    w: [f64; 3],
    z: [f64; 3],
    /// What is covered: triangles with fixed-point corners, all turned the same way.
    parts: Vec<[[i64; 2]; 3]>,
    /// Pixels around it: left, top, right, bottom (these two not included).
    bounds: [u32; 4],
}

/// Four pixels: upper left, upper right, lower left, lower right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quad {
    pub x: u32,
    pub y: u32,
    /// A bit for each pixel.
    pub covered: u8,
}

/// Place of a corner in fixed point, as the machine computes it: about the centre, in f32.
fn on_screen(clip: [f64; 4], size: [u32; 2]) -> [i64; 2] {
    let w = 1.0 / clip[3] as f32;
    [0, 1].map(|k| {
        let scale = size[k] as f32 * 0.5 * STEPS as f32;
        let place = (clip[k] as f32 * w * scale).round_ties_even();
        place as i64 + i64::from(size[k]) * i64::from(STEPS) / 2
    })
}

impl Setup {
    /// `None` when nothing of it is on the screen.
    pub fn new(corners: &[Corner; 3], size: [u32; 2], cull: Cull) -> Option<Setup> {
        let clip = corners.map(|c| c.clip.map(f64::from));
        if clip.iter().flatten().any(|x| !x.is_finite()) {
            return None;
        }
        let half = size.map(|s| f64::from(s) * 0.5);
        let rows = clip.map(|c| [(c[0] + c[3]) * half[0], (c[1] + c[3]) * half[1], c[3]]);
        let weights = inverse(&rows)?;
        let polygon = cut(&clip);
        let mut points: Vec<[i64; 2]> = polygon.iter().map(|&c| on_screen(c, size)).collect();
        if polygon.len() == 3 && polygon[..] == clip[..] {
            for (point, corner) in points.iter_mut().zip(corners) {
                if let Some(screen) = corner.screen {
                    *point = [0, 1].map(|k| i64::from(screen[k]) + i64::from(size[k]) * i64::from(STEPS) / 2);
                }
            }
        }
        let mut area = 0i64;
        for (k, a) in points.iter().enumerate() {
            let b = points[(k + 1) % points.len()];
            area += a[0] * b[1] - b[0] * a[1];
        }
        // y goes down, so what is counter-clockwise on the screen has a negative area.
        let front = area < 0;
        if area == 0 || cull == Cull::Back && !front || cull == Cull::Front && front {
            return None;
        }
        if front {
            points.reverse();
        }
        let parts: Vec<_> = (1..points.len().saturating_sub(1))
            .map(|k| [points[0], points[k], points[k + 1]])
            .filter(|[a, b, c]| edge(*a, *b, *c) > 0)
            .collect();
        let steps = i64::from(STEPS);
        let limit = |k: usize, x: i64| x.clamp(0, i64::from(size[k])) as u32;
        let least = |k: usize| points.iter().map(|p| p[k]).min().unwrap_or(0).div_euclid(steps);
        let most = |k: usize| points.iter().map(|p| p[k]).max().unwrap_or(0).div_euclid(steps) + 1;
        let bounds = [limit(0, least(0)), limit(1, least(1)), limit(0, most(0)), limit(1, most(1))];
        if parts.is_empty() || bounds[0] >= bounds[2] || bounds[1] >= bounds[3] {
            return None;
        }
        Some(Setup { front, weights, w: clip.map(|c| c[3]), z: clip.map(|c| c[2]), parts, bounds })
    }

    /// All quads of which something is covered, row by row.
    pub fn quads(&self, mut take: impl FnMut(Quad)) {
        let [left, top, right, bottom] = self.bounds;
        for y in (top & !1..bottom).step_by(2) {
            for x in (left & !1..right).step_by(2) {
                let mut covered = 0;
                for k in 0..4 {
                    let (px, py) = (x + (k & 1), y + (k >> 1));
                    if px < right && py < bottom && px >= left && py >= top && self.covers(px, py) {
                        covered |= 1 << k;
                    }
                }
                if covered != 0 {
                    take(Quad { x, y, covered });
                }
            }
        }
    }

    fn covers(&self, x: u32, y: u32) -> bool {
        let half = i64::from(STEPS / 2);
        let p = [i64::from(x * STEPS) + half, i64::from(y * STEPS) + half];
        self.parts.iter().any(|&[a, b, c]| {
            [(a, b), (b, c), (c, a)].into_iter().all(|(a, b)| match edge(a, b, p) {
                // An edge belongs to it if it is a left one, or horizontal and on top.
                0 => b[1] < a[1] || b[1] == a[1] && b[0] > a[0],
                e => e > 0,
            })
        })
    }

    fn weights_at(&self, x: f64, y: f64) -> [f64; 3] {
        self.weights.map(|[a, b, c]| a * x + b * y + c)
    }

    /// w in clip space at the centre of a pixel.
    pub fn w_at(&self, x: u32, y: u32) -> f32 {
        let e = self.weights_at(f64::from(x) + 0.5, f64::from(y) + 0.5);
        (1.0 / (e[0] + e[1] + e[2])) as f32
    }

    /// Depth at the centre of a pixel; helpers may be outside of 0 to 1.
    pub fn depth_at(&self, x: u32, y: u32) -> f32 {
        let e = self.weights_at(f64::from(x) + 0.5, f64::from(y) + 0.5);
        (e[0] * self.z[0] + e[1] * self.z[1] + e[2] * self.z[2]) as f32
    }

    /// Part and constant of a varying at the centre of a pixel, see [`kempe_ir::io::Plane`]; `v` by corner. Flat ones are those
    /// of the first corner.
    pub fn plane_at(&self, v: [u32; 3], how: Interpolation, x: u32, y: u32) -> (u32, u32) {
        if how == Interpolation::Flat {
            return (0, v[0]);
        }
        let e = self.weights_at(f64::from(x) + 0.5, f64::from(y) + 0.5);
        let [a, b, c] = v.map(|v| f64::from(f32::from_bits(v)));
        let part = match how {
            Interpolation::NoPerspective => e[1] * self.w[1] * (b - a) + e[2] * self.w[2] * (c - a),
            _ => e[1] * (b - a) + e[2] * (c - a),
        };
        ((part as f32).to_bits(), v[0])
    }
}

/// Twice the area of the triangle a, b, p; positive when they go clockwise on the screen.
fn edge(a: [i64; 2], b: [i64; 2], p: [i64; 2]) -> i64 {
    (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])
}

/// Weights from corners: the transposed rows inverted.
fn inverse(m: &[[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let columns = [cross(m[1], m[2]), cross(m[2], m[0]), cross(m[0], m[1])];
    let determinant: f64 = (0..3).map(|k| m[0][k] * columns[0][k]).sum();
    if determinant == 0.0 || !determinant.is_finite() {
        return None;
    }
    Some(columns.map(|c| c.map(|x| x / determinant)))
}

/// The polygon that is left of a triangle: in front of the eye, between near and far, not far outside.
fn cut(clip: &[[f64; 4]; 3]) -> Vec<[f64; 4]> {
    type Distance = fn(&[f64; 4]) -> f64;
    let planes: [Distance; 7] = [
        |c| c[3] - LEAST_W,
        |c| c[2],
        |c| c[3] - c[2],
        |c| GUARD * c[3] + c[0],
        |c| GUARD * c[3] - c[0],
        |c| GUARD * c[3] + c[1],
        |c| GUARD * c[3] - c[1],
    ];
    let mut polygon = clip.to_vec();
    for distance in planes {
        if polygon.iter().all(|c| distance(c) >= 0.0) {
            continue;
        }
        let mut next = Vec::with_capacity(polygon.len() + 1);
        for (k, a) in polygon.iter().enumerate() {
            let b = &polygon[(k + 1) % polygon.len()];
            let (da, db) = (distance(a), distance(b));
            if da >= 0.0 {
                next.push(*a);
            }
            if (da >= 0.0) != (db >= 0.0) {
                let t = da / (da - db);
                next.push([0, 1, 2, 3].map(|i| a[i] + (b[i] - a[i]) * t));
            }
        }
        polygon = next;
        if polygon.is_empty() {
            break;
        }
    }
    polygon
}

#[cfg(test)]
mod tests {
    use super::*;
    use kempe_ir::io::Plane;
    use std::collections::BTreeMap;

    fn corner(x: f32, y: f32, z: f32, w: f32) -> Corner {
        Corner { clip: [x * w, y * w, z * w, w], screen: None }
    }

    fn pixels(setup: &Setup) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        setup.quads(|q| {
            out.extend((0..4).filter(|k| q.covered >> k & 1 != 0).map(|k| (q.x + (k & 1), q.y + (k >> 1))));
        });
        out
    }

    /// Two triangles that share an edge cover each pixel of their square once, wherever the edge is.
    #[test]
    fn shared_edges_are_drawn_once() {
        let size = [16, 12];
        let screen = |x: f32, y: f32| corner(x / 8.0 - 1.0, y / 6.0 - 1.0, 0.5, 1.0);
        for (dx, dy) in [(0.0, 0.0), (0.5, 0.5), (0.25, 0.375), (0.5, 0.0)] {
            let p = [(2.0, 2.0), (10.0, 2.0), (10.0, 10.0), (2.0, 10.0)].map(|(x, y)| screen(x + dx, y + dy));
            let mut seen: BTreeMap<(u32, u32), u32> = BTreeMap::new();
            for t in [[p[0], p[1], p[2]], [p[0], p[2], p[3]]] {
                for at in pixels(&Setup::new(&t, size, Cull::None).unwrap()) {
                    *seen.entry(at).or_default() += 1;
                }
            }
            assert!(seen.len() == 64 && seen.values().all(|n| *n == 1), "{dx} {dy}: {seen:?}");
            // A centre on the upper or left edge is inside, one on the lower or right edge is not.
            assert_eq!(seen.contains_key(&(2, 2)), dx <= 0.5 && dy <= 0.5);
            assert_eq!(seen.contains_key(&(10, 5)), dx > 0.5);
        }
    }

    #[test]
    fn facing_and_culling() {
        let size = [8, 8];
        // Counter-clockwise on a screen whose y goes down.
        let t = [corner(-1.0, -1.0, 0.0, 1.0), corner(-1.0, 1.0, 0.0, 1.0), corner(1.0, 1.0, 0.0, 1.0)];
        let back = [t[0], t[2], t[1]];
        assert!(Setup::new(&t, size, Cull::None).unwrap().front);
        assert!(!Setup::new(&back, size, Cull::None).unwrap().front);
        assert!(Setup::new(&t, size, Cull::Front).is_none() && Setup::new(&back, size, Cull::Back).is_none());
        assert!(Setup::new(&[t[0], t[1], t[1]], size, Cull::None).is_none());
        let nan = Corner { clip: [f32::NAN; 4], screen: None };
        assert!(Setup::new(&[t[0], t[1], nan], size, Cull::None).is_none());
    }

    /// `P * W + C` is the value in perspective: the ray through the pixel meets the triangle in space there.
    #[test]
    fn planes_give_the_value_in_perspective() {
        let size = [64, 48];
        let at = [[-1.0f32, 0.8, 0.1], [0.9, 0.7, 6.0], [0.1, -0.9, 2.5]];
        // x and y in clip space are those in space, w is the distance.
        let corners = at.map(|[x, y, d]| Corner { clip: [x, y, d * 0.5, d + 0.5], screen: None });
        let setup = Setup::new(&corners, size, Cull::None).unwrap();
        let v = [3.0f32, -20.0, 11.5];
        let mut count = 0;
        for (x, y) in pixels(&setup) {
            // Weights in space from a system of equations solved another way: bisection of nothing, Cramer on the plane.
            let (sx, sy) = ((f64::from(x) + 0.5) / 32.0 - 1.0, (f64::from(y) + 0.5) / 24.0 - 1.0);
            let row = |k: usize| {
                let c = corners[k].clip.map(f64::from);
                (c[0] - sx * c[3], c[1] - sy * c[3])
            };
            let cross = |a: (f64, f64), b: (f64, f64)| a.0 * b.1 - a.1 * b.0;
            let b = [cross(row(1), row(2)), cross(row(2), row(0)), cross(row(0), row(1))];
            let sum: f64 = b.iter().sum();
            let want: f64 = (0..3).map(|k| b[k] / sum * f64::from(v[k])).sum();
            let want_w: f64 = (0..3).map(|k| b[k] / sum * f64::from(corners[k].clip[3])).sum();
            let want_z: f64 = (0..3).map(|k| b[k] / sum * f64::from(corners[k].clip[2])).sum();
            let w = setup.w_at(x, y);
            let (part, constant) = setup.plane_at(v.map(f32::to_bits), Interpolation::Smooth, x, y);
            let plane = Plane { part: vec![part], constant: vec![constant] };
            let got = f64::from(f32::from_bits(plane.value(0, Interpolation::Smooth, w.to_bits())));
            assert!((got - want).abs() < 1e-5, "{x} {y}: {got} {want}");
            assert!(
                (f64::from(w) - want_w).abs() < 1e-5
                    && (f64::from(setup.depth_at(x, y)) - want_z / want_w).abs() < 1e-6
            );
            count += 1;
        }
        assert!(count > 250, "{count}");
    }

    /// On the screen the value of a corner is reached at the corner, and the middle of an edge has the mean.
    #[test]
    fn planes_without_perspective() {
        let size = [32, 32];
        let corners =
            [corner(-1.0, -1.0, 0.0, 1.0), corner(-1.0, 1.0, 0.0, 5.0), corner(1.0, -1.0, 0.0, 2.0)];
        let setup = Setup::new(&corners, size, Cull::None).unwrap();
        let v = [0.0f32, 32.0, 64.0].map(f32::to_bits);
        for (x, y) in [(0, 0), (3, 9), (10, 2)] {
            let (part, constant) = setup.plane_at(v, Interpolation::NoPerspective, x, y);
            let want = (y as f32 + 0.5) + 2.0 * (x as f32 + 0.5);
            assert!((f32::from_bits(part) - want).abs() < 1e-4 && constant == 0);
        }
        assert_eq!(setup.plane_at([7, 8, 9], Interpolation::Flat, 5, 5), (0, 7));
    }

    /// What reaches behind the eye or beyond the far end is cut there, and keeps its values.
    #[test]
    fn clipping() {
        let size = [16, 16];
        let floor = |x: f32, z: f32| Corner { clip: [x, 1.0, z * 0.9, z], screen: None };
        let t = [floor(-40.0, -5.0), floor(0.0, 50.0), floor(40.0, -5.0)];
        let setup = Setup::new(&t, size, Cull::None).unwrap();
        let seen = pixels(&setup);
        assert!(seen.len() > 60 && seen.iter().all(|(_, y)| *y >= 8), "{seen:?}");
        for (x, y) in seen {
            // The floor is one below the eye: w is the distance at which the row sees it.
            let want = 8.0 / (y as f32 + 0.5 - 8.0);
            assert!((setup.w_at(x, y) / want - 1.0).abs() < 1e-5);
        }
        let all_behind = [floor(-1.0, -5.0), floor(0.0, -1.0), floor(1.0, -5.0)];
        assert!(Setup::new(&all_behind, size, Cull::None).is_none());
        let deep =
            t.map(|c| Corner { clip: [c.clip[0], c.clip[1], c.clip[3] + 1.0, c.clip[3]], screen: None });
        assert!(Setup::new(&deep, size, Cull::None).is_none());
    }
}
