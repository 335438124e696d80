//! Meshes: made here by name, or read from a text in the style of Wavefront OBJ.
//!
//! Whatever it is, a mesh has the same attributes: position, normal, place in a texture, colour, tangent. Triangles that face
//! outwards are counter-clockwise for someone who looks at them with y upwards.

use std::f32::consts::PI;

/// An attribute of a vertex; missing components are 0, 0, 0, 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Attribute {
    Position,
    Normal,
    Uv,
    Color,
    Tangent,
}

impl Attribute {
    /// In the order of the locations that they have if nothing else is said.
    pub const ALL: [(&'static str, Attribute); 5] = [
        ("position", Attribute::Position),
        ("normal", Attribute::Normal),
        ("uv", Attribute::Uv),
        ("color", Attribute::Color),
        ("tangent", Attribute::Tangent),
    ];

    /// What a name in a shader most likely asks for.
    pub fn from_name(name: &str) -> Option<Attribute> {
        let name = name.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        Some(match () {
            () if has(&["tangent"]) => Attribute::Tangent,
            () if has(&["norm"]) => Attribute::Normal,
            () if has(&["uv", "texcoord", "tex_coord"]) => Attribute::Uv,
            () if has(&["col"]) => Attribute::Color,
            () if has(&["pos", "vert"]) => Attribute::Position,
            () => return None,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Vertex {
    pub position: [f32; 3],
    pub normal: [f32; 3],
    pub uv: [f32; 2],
    pub color: [f32; 4],
    pub tangent: [f32; 3],
}

impl Vertex {
    fn new(position: [f32; 3], normal: [f32; 3], uv: [f32; 2], tangent: [f32; 3]) -> Vertex {
        Vertex { position, normal, uv, color: [1.0; 4], tangent }
    }

    pub fn attribute(&self, attribute: Attribute) -> [f32; 4] {
        let three = |[x, y, z]: [f32; 3], w| [x, y, z, w];
        match attribute {
            Attribute::Position => three(self.position, 1.0),
            Attribute::Normal => three(self.normal, 0.0),
            Attribute::Uv => [self.uv[0], self.uv[1], 0.0, 1.0],
            Attribute::Color => self.color,
            Attribute::Tangent => three(self.tangent, 1.0),
        }
    }
}

/// Vertices and triangles.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Mesh {
    pub vertices: Vec<Vertex>,
    pub triangles: Vec<[u32; 3]>,
}

/// Most vertices, and most triangles.
pub const MAX_VERTICES: usize = 1 << 20;

/// Largest number of parts that a mesh by name is divided into along an axis.
const MAX_PARTS: u32 = 256;

impl Mesh {
    /// `screen`, `quad`, `triangle`, `cube`, `sphere N`, `grid N`, `torus N`.
    ///
    /// # Errors
    /// When there is no such mesh.
    pub fn named(text: &str) -> Result<Mesh, String> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let parts = match words.next() {
            None => None,
            Some(n) => Some(n.parse().ok().filter(|n| (1..=MAX_PARTS).contains(n)).ok_or_else(|| {
                format!("`{n}` parts: a mesh is divided into 1 to {MAX_PARTS} along an axis")
            })?),
        };
        if words.next().is_some() {
            return Err(format!("`{text}` has too many words"));
        }
        Ok(match name {
            "screen" => screen(),
            "quad" => grid(1, |u, v| [2.0 * u - 1.0, 1.0 - 2.0 * v, 0.0], [0.0, 0.0, 1.0]),
            "triangle" => triangle(),
            "cube" => cube(),
            "sphere" => sphere(parts.unwrap_or(16)),
            "torus" => torus(parts.unwrap_or(16)),
            "grid" => grid(parts.unwrap_or(16), |u, v| [2.0 * u - 1.0, 0.0, 2.0 * v - 1.0], [0.0, 1.0, 0.0]),
            _ => {
                return Err(format!(
                    "`{name}` is no mesh; there are screen, quad, triangle, cube, sphere N, torus N, grid N, and files .obj"
                ));
            }
        })
    }

    /// Positions (`v`, with a colour behind it if there is one), normals, places in textures and faces of a text in the style of
    /// Wavefront OBJ; other lines are left out. Faces without normals get their own.
    ///
    /// # Errors
    /// The first line that cannot be.
    pub fn obj(text: &str) -> Result<Mesh, String> {
        let (mut v, mut vn, mut vt) = (Vec::new(), Vec::<[f32; 3]>::new(), Vec::<[f32; 2]>::new());
        let mut mesh = Mesh::default();
        for (n, line) in text.lines().enumerate() {
            let fail = |what: &str| Err(format!("line {}: {what}", n + 1));
            let mut words = line.split_whitespace();
            let key = words.next().unwrap_or_default();
            let numbers = || -> Option<Vec<f32>> {
                let list: Option<Vec<f32>> = line
                    .split_whitespace()
                    .skip(1)
                    .map(|w| w.parse::<f32>().ok().filter(|x| x.is_finite()))
                    .collect();
                list.filter(|list| list.len() <= 8)
            };
            match key {
                "v" | "vn" | "vt" => {
                    let list = match numbers() {
                        Some(list) if list.len() >= if key == "vt" { 2 } else { 3 } => list,
                        _ => return fail("too few numbers, or none"),
                    };
                    if v.len().max(vn.len()).max(vt.len()) >= MAX_VERTICES {
                        return fail("too many vertices");
                    }
                    match key {
                        "v" => {
                            let color =
                                if list.len() >= 6 { [list[3], list[4], list[5], 1.0] } else { [1.0; 4] };
                            v.push(([list[0], list[1], list[2]], color));
                        }
                        "vn" => vn.push([list[0], list[1], list[2]]),
                        _ => vt.push([list[0], 1.0 - list[1]]),
                    }
                }
                "f" => {
                    let mut corners = Vec::new();
                    for word in words {
                        let mut parts = word.split('/');
                        let mut index = |len: usize| -> Option<Option<usize>> {
                            match parts.next() {
                                None | Some("") => Some(None),
                                Some(text) => {
                                    let n: i64 = text.parse().ok()?;
                                    let at = if n < 0 { len as i64 + n } else { n - 1 };
                                    (0..len as i64).contains(&at).then_some(Some(at as usize))
                                }
                            }
                        };
                        let (a, b, c) = (index(v.len()), index(vt.len()), index(vn.len()));
                        let (Some(Some(a)), Some(b), Some(c)) = (a, b, c) else {
                            return fail("a corner that is not there");
                        };
                        let (position, color) = v[a];
                        let normal = c.map_or([0.0; 3], |c| vn[c]);
                        let uv = b.map_or([0.0; 2], |b| vt[b]);
                        corners.push(Vertex { color, ..Vertex::new(position, normal, uv, [1.0, 0.0, 0.0]) });
                    }
                    if corners.len() < 3 || mesh.vertices.len() + corners.len() > MAX_VERTICES {
                        return fail("a face of too few corners, or too many faces");
                    }
                    if corners.iter().any(|c| c.normal == [0.0; 3]) {
                        let at = |k: usize| corners[k].position;
                        let normal = unit(cross(minus(at(1), at(0)), minus(at(2), at(0))));
                        corners.iter_mut().for_each(|c| c.normal = normal);
                    }
                    let first = mesh.vertices.len() as u32;
                    let count = corners.len() as u32;
                    mesh.triangles.extend((1..count - 1).map(|k| [first, first + k, first + k + 1]));
                    mesh.vertices.append(&mut corners);
                }
                _ => {}
            }
        }
        if mesh.triangles.is_empty() {
            return Err("there is no face".to_owned());
        }
        Ok(mesh)
    }
}

fn cross(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn minus(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn unit(v: [f32; 3]) -> [f32; 3] {
    let length = (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt();
    if length > 0.0 { v.map(|x| x / length) } else { [0.0, 1.0, 0.0] }
}

/// One triangle that covers the screen without a matrix, places in textures from 0 to 1 from the upper left.
fn screen() -> Mesh {
    let corner = |x: f32, y: f32| {
        Vertex::new([x, y, 0.0], [0.0, 0.0, 1.0], [x * 0.5 + 0.5, y * 0.5 + 0.5], [1.0, 0.0, 0.0])
    };
    Mesh {
        vertices: vec![corner(-1.0, -1.0), corner(-1.0, 3.0), corner(3.0, -1.0)],
        triangles: vec![[0, 1, 2]],
    }
}

fn triangle() -> Mesh {
    let corner = |x: f32, y: f32, color| Vertex {
        color,
        ..Vertex::new([x, y, 0.0], [0.0, 0.0, 1.0], [x * 0.5 + 0.5, 0.5 - y * 0.5], [1.0, 0.0, 0.0])
    };
    Mesh {
        vertices: vec![
            corner(0.0, 0.8, [1.0, 0.0, 0.0, 1.0]),
            corner(-0.8, -0.8, [0.0, 1.0, 0.0, 1.0]),
            corner(0.8, -0.8, [0.0, 0.0, 1.0, 1.0]),
        ],
        triangles: vec![[0, 1, 2]],
    }
}

/// Triangles of a net of `n` by `m` fields whose vertices are numbered row by row.
fn net(n: u32, m: u32) -> Vec<[u32; 3]> {
    let mut out = Vec::with_capacity(2 * (n * m) as usize);
    for j in 0..m {
        for i in 0..n {
            let a = j * (n + 1) + i;
            let (b, c, d) = (a + 1, a + n + 1, a + n + 2);
            out.push([a, c, b]);
            out.push([b, c, d]);
        }
    }
    out
}

fn grid(n: u32, place: impl Fn(f32, f32) -> [f32; 3], normal: [f32; 3]) -> Mesh {
    let mut vertices = Vec::new();
    for j in 0..=n {
        for i in 0..=n {
            let (u, v) = (i as f32 / n as f32, j as f32 / n as f32);
            vertices.push(Vertex::new(place(u, v), normal, [u, v], [1.0, 0.0, 0.0]));
        }
    }
    Mesh { vertices, triangles: net(n, n) }
}

fn sphere(n: u32) -> Mesh {
    let (columns, rows) = (2 * n, n.max(2));
    let mut vertices = Vec::new();
    for j in 0..=rows {
        for i in 0..=columns {
            let (u, v) = (i as f32 / columns as f32, j as f32 / rows as f32);
            let (a, b) = (2.0 * PI * u, PI * v);
            let p = [libm::sinf(b) * libm::sinf(a), libm::cosf(b), libm::sinf(b) * libm::cosf(a)];
            vertices.push(Vertex::new(p, p, [u, v], [libm::cosf(a), 0.0, -libm::sinf(a)]));
        }
    }
    Mesh { vertices, triangles: net(columns, rows) }
}

fn torus(n: u32) -> Mesh {
    let (columns, rows) = (2 * n, n.max(3));
    let mut vertices = Vec::new();
    for j in 0..=rows {
        for i in 0..=columns {
            let (u, v) = (i as f32 / columns as f32, j as f32 / rows as f32);
            let (a, b) = (2.0 * PI * u, 2.0 * PI * v);
            let around = [libm::sinf(a), 0.0, libm::cosf(a)];
            let normal = [libm::cosf(b) * around[0], -libm::sinf(b), libm::cosf(b) * around[2]];
            let p = [0, 1, 2].map(|k| around[k] * 0.7 + normal[k] * 0.3);
            vertices.push(Vertex::new(p, normal, [u, v], [libm::cosf(a), 0.0, -libm::sinf(a)]));
        }
    }
    Mesh { vertices, triangles: net(columns, rows) }
}

fn cube() -> Mesh {
    let mut mesh = Mesh::default();
    for axis in 0..3 {
        for side in [1.0f32, -1.0] {
            let mut normal = [0.0; 3];
            normal[axis] = side;
            // Upwards for the sides, to the back for top and bottom.
            let up = if axis == 1 { [0.0, 0.0, -side] } else { [0.0, 1.0, 0.0] };
            let right = cross(up, normal);
            let first = mesh.vertices.len() as u32;
            for (x, y) in [(-1.0f32, 1.0f32), (1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)] {
                let p = [0, 1, 2].map(|k| normal[k] + right[k] * x + up[k] * y);
                mesh.vertices.push(Vertex::new(p, normal, [x * 0.5 + 0.5, 0.5 - y * 0.5], right));
            }
            mesh.triangles.extend(net(1, 1).into_iter().map(|t| t.map(|k| k + first)));
        }
    }
    mesh
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Triangles of what stands in space look the way of their normals.
    #[test]
    fn meshes_face_outwards() {
        for name in ["quad", "cube", "sphere 8", "torus 6", "grid 3", "triangle"] {
            let mesh = Mesh::named(name).unwrap();
            for t in &mesh.triangles {
                let [a, b, c] = t.map(|k| mesh.vertices[k as usize]);
                let n = cross(minus(b.position, a.position), minus(c.position, a.position));
                let dot: f32 = (0..3).map(|k| n[k] * (a.normal[k] + b.normal[k] + c.normal[k])).sum();
                let area: f32 = n.iter().map(|x| x * x).sum();
                assert!(dot > 0.0 || area < 1e-9, "{name}: {t:?}");
            }
        }
    }

    #[test]
    fn names_and_texts() {
        for bad in ["", "ball", "sphere 0", "sphere 1000", "sphere x", "cube 1 2"] {
            assert!(Mesh::named(bad).is_err(), "{bad}");
        }
        let text = "# a square\nv 0 0 0\nv 1 0 0 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\ng x\nf 1/1 2/1 3/1 -1/-1\n";
        let mesh = Mesh::obj(text).unwrap();
        assert_eq!((mesh.vertices.len(), mesh.triangles.as_slice()), (4, &[[0, 1, 2], [0, 2, 3]][..]));
        assert_eq!(
            (mesh.vertices[0].normal, mesh.vertices[1].color),
            ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0])
        );
        for bad in [
            "",
            "v 1 2\n",
            "v 0 0 nan\n",
            "v 0 0 0\nf 1 1\n",
            "v 0 0 0\nf 1 2 3\n",
            "v 0 0 0\nf 1 0 1\n",
            "f 1//x\n",
        ] {
            assert!(Mesh::obj(bad).is_err(), "{bad:?}");
        }
        let names = ["a_position", "inNormal", "uv0", "vertexColor", "tangent", "weights"];
        let want = ["position", "normal", "uv", "color", "tangent"];
        for (k, name) in names.iter().enumerate() {
            let found = Attribute::from_name(name);
            assert_eq!(
                found,
                want.get(k).and_then(|w| Attribute::ALL.iter().find(|a| a.0 == *w)).map(|a| a.1)
            );
        }
    }
}
