// Horizontal Gaussian blur of RGBA8 pixels, radius 4, through work-group memory: 64 pixels and an apron on each side.

struct Image {
    width: u32,
    height: u32,
}

@group(0) @binding(0) var<uniform> image: Image;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_pixels: array<u32>;

const RADIUS: u32 = 4u;
var<workgroup> line: array<vec4<f32>, 72>;

fn fetch(x: i32, y: u32) -> vec4<f32> {
    let column = u32(clamp(x, 0, i32(image.width) - 1));
    return unpack4x8unorm(source[y * image.width + column]);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let t = local.x;
    let y = group.y;
    let first = i32(group.x * 64u) - i32(RADIUS);
    line[t] = fetch(first + i32(t), y);
    if t < 2u * RADIUS {
        line[t + 64u] = fetch(first + i32(t) + 64, y);
    }
    workgroupBarrier();

    var weights = array<f32, 5>(0.2042, 0.1802, 0.1238, 0.0663, 0.0276);
    var sum = line[t + RADIUS] * weights[0];
    for (var k = 1u; k <= RADIUS; k++) {
        sum += (line[t + RADIUS - k] + line[t + RADIUS + k]) * weights[k];
    }
    let x = group.x * 64u + t;
    if x < image.width && y < image.height {
        target_pixels[y * image.width + x] = pack4x8unorm(sum);
    }
}
