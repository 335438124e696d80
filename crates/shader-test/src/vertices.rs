//! What a draw is given: rectangles, and the table of `[vertex data]`.

use crate::command::{Class, Mode, Number, glsl_type};
use crate::parse::Line;
use kempe::link::{LEGACY_PREFIX, Linked};

/// Most vertices of a table.
const MAX_VERTICES: usize = 1 << 16;

/// Vertices and what they make.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Supply {
    pub vertices: u32,
    pub triangles: Vec<[u32; 3]>,
    /// By location: four words for each vertex.
    pub attributes: Vec<(u8, Vec<[u32; 4]>)>,
}

const ONE: u32 = 1f32.to_bits();

/// What an attribute is that no array is given for.
fn usual(name: &str) -> [u32; 4] {
    match name.strip_prefix(LEGACY_PREFIX) {
        Some("Color") => [ONE; 4],
        Some("Normal") => [0, 0, ONE, ONE],
        _ => [0, 0, 0, ONE],
    }
}

/// Everything with its usual value, for so many vertices.
fn usual_attributes(vertex: &Linked, count: usize) -> Vec<(u8, Vec<[u32; 4]>)> {
    let mut out: Vec<(u8, Vec<[u32; 4]>)> = Vec::new();
    for input in &vertex.names.inputs {
        for location in input.location..input.location.saturating_add(input.count) {
            // Several inputs may share a location.
            if let Ok(location) = u8::try_from(location)
                && out.iter().all(|(other, _)| *other != location)
            {
                out.push((location, vec![usual(&input.name); count]));
            }
        }
    }
    out
}

fn set(attributes: &mut Vec<(u8, Vec<[u32; 4]>)>, location: u32, values: Vec<[u32; 4]>) {
    match attributes.iter_mut().find(|a| u32::from(a.0) == location) {
        Some(a) => a.1 = values,
        None => attributes.extend(u8::try_from(location).ok().map(|l| (l, values))),
    }
}

/// Two triangles: left, bottom, width and height in clip space, the same of the place in textures.
pub fn rectangle(vertex: &Linked, rect: [f32; 4], texture: Option<[f32; 4]>) -> Supply {
    let corners = |[x, y, w, h]: [f32; 4]| {
        let at = |x: f32, y: f32| [x.to_bits(), y.to_bits(), 0, ONE];
        vec![at(x, y), at(x + w, y), at(x, y + h), at(x + w, y + h)]
    };
    let mut attributes = usual_attributes(vertex, 4);
    let named = |name: &str| {
        let legacy = format!("{LEGACY_PREFIX}{name}");
        let own = format!("piglit_{}", name.to_lowercase());
        vertex.names.inputs.iter().find(|i| i.name == legacy || i.name == own).map(|i| i.location)
    };
    // Where neither is there, the generic attribute 0 is the position.
    if let Some(location) = named("Vertex").or_else(|| vertex.names.inputs.iter().map(|i| i.location).min()) {
        set(&mut attributes, location, corners(rect));
    }
    if let (Some(texture), Some(location)) = (texture, named("MultiTexCoord0").or_else(|| named("texcoord")))
    {
        set(&mut attributes, location, corners(texture));
    }
    Supply { vertices: 4, triangles: vec![[0, 1, 2], [2, 1, 3]], attributes }
}

/// One column of the table: where it goes and how it is written.
struct Column {
    location: Option<u32>,
    class: Class,
    scalars: usize,
}

/// `name[/index]/type/count` or `name[/index]/type/glsl type[/column of a matrix]`.
fn column(vertex: &Linked, head: &str) -> Result<Column, String> {
    let mut parts: Vec<&str> = head.split('/').collect();
    let name = parts.remove(0);
    let index: Option<u32> = parts.first().and_then(|p| p.parse().ok());
    if index.is_some() {
        parts.remove(0);
    }
    let (ty, count, of_matrix) = match parts.as_slice() {
        [ty, count] => (*ty, *count, None),
        [ty, count, column] => (*ty, *count, column.parse::<u32>().ok()),
        _ => return Err("a head of the vertex data".to_owned()),
    };
    let class = match ty {
        "float" => Class::Float,
        "int" | "uint" => Class::Int,
        "double" => return Err("attributes of 64 bits".to_owned()),
        _ => return Err(format!("vertex data of type {ty}")),
    };
    let (mut scalars, mut columns) = (0, 1);
    if let Ok(n) = count.parse::<usize>() {
        scalars = n;
    } else if let Some((_, n)) = glsl_type(count) {
        scalars = n;
        if let Some(rest) = count.strip_prefix("mat") {
            columns = rest.chars().next().and_then(|c| c.to_digit(10)).unwrap_or(1);
            scalars = n / columns as usize;
        }
    }
    if scalars == 0 || scalars > 4 {
        return Err("a head of the vertex data".to_owned());
    }
    let legacy = name.strip_prefix("gl_").map(|n| format!("{LEGACY_PREFIX}{n}"));
    let input = vertex.names.inputs.iter().find(|i| i.name == name || Some(&i.name) == legacy.as_ref());
    let at = index.unwrap_or(0) * columns + of_matrix.unwrap_or(0);
    // What the shader does not have is left out: a compiler may drop it.
    let location = input.filter(|i| at < i.count).map(|i| i.location + at);
    Ok(Column { location, class, scalars })
}

/// The vertices of the table.
///
/// # Errors
/// What of it is not known here.
pub fn table(vertex: &Linked, lines: &[Line], mode: Mode, first: u32, count: u32) -> Result<Supply, String> {
    let Some((head, rows)) = lines.split_first() else {
        return Err("draw arrays without vertex data".to_owned());
    };
    if rows.len() > MAX_VERTICES {
        return Err("too much vertex data".to_owned());
    }
    let columns: Vec<Column> =
        head.text.split_whitespace().map(|h| column(vertex, h)).collect::<Result<_, _>>()?;
    let mut lists: Vec<Vec<[u32; 4]>> = vec![Vec::with_capacity(rows.len()); columns.len()];
    for row in rows {
        let mut words = row.text.split_whitespace();
        for (c, list) in columns.iter().zip(&mut lists) {
            let mut value = match c.class {
                Class::Float => [0, 0, 0, ONE],
                _ => [0, 0, 0, 1],
            };
            for slot in value.iter_mut().take(c.scalars) {
                let Some(n) = words.next().and_then(Number::parse) else {
                    return Err("a row of the vertex data".to_owned());
                };
                *slot = if c.class == Class::Float { n.f32().to_bits() } else { n.i64() as u32 };
            }
            list.push(value);
        }
    }
    let mut attributes = usual_attributes(vertex, rows.len());
    for (c, list) in columns.iter().zip(lists) {
        if let Some(location) = c.location {
            set(&mut attributes, location, list);
        }
    }
    let end = first.saturating_add(count);
    if end as usize > rows.len() {
        return Err("draw arrays beyond the vertex data".to_owned());
    }
    let triangles: Vec<[u32; 3]> = match mode {
        Mode::Triangles => (0..count / 3).map(|k| [3 * k, 3 * k + 1, 3 * k + 2]).collect(),
        Mode::Strip => {
            (2..count).map(|k| if k % 2 == 0 { [k - 2, k - 1, k] } else { [k - 1, k - 2, k] }).collect()
        }
        Mode::Fan => (2..count).map(|k| [0, k - 1, k]).collect(),
        // The last corner, which flat values come from, is the last of both.
        Mode::Quads => (0..count / 4)
            .flat_map(|k| [[4 * k, 4 * k + 1, 4 * k + 3], [4 * k + 1, 4 * k + 2, 4 * k + 3]])
            .collect(),
    };
    let triangles = triangles.into_iter().map(|t| t.map(|k| k + first)).collect();
    Ok(Supply { vertices: rows.len() as u32, triangles, attributes })
}
