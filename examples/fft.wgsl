// Fourier transforms of 128 complex numbers, one for each work-group of 64 (radix 2, Stockham's order, between two
// halves of work-group memory).

struct Params {
    // -1 forward, 1 inverse (without the division by the length).
    direction: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> output: array<vec2<f32>>;

const N: u32 = 128u;
const PI: f32 = 3.14159265359;
var<workgroup> line: array<vec2<f32>, 256>;

fn multiply(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let t = local.x;
    let base = group.x * N;
    line[t] = input[base + t];
    line[t + 64u] = input[base + t + 64u];

    var src = 0u;
    for (var span = 1u; span < N; span *= 2u) {
        workgroupBarrier();
        let dst = N - src;
        let k = t & (span - 1u);
        let angle = params.direction * PI * f32(k) / f32(span);
        let a = line[src + t];
        let b = multiply(line[src + t + 64u], vec2<f32>(cos(angle), sin(angle)));
        let place = ((t - k) << 1u) + k;
        line[dst + place] = a + b;
        line[dst + place + span] = a - b;
        src = dst;
    }
    workgroupBarrier();

    output[base + t] = line[src + t];
    output[base + t + 64u] = line[src + t + 64u];
}
