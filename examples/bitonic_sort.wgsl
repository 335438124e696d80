// Sorts blocks of 256 keys with their payloads in work-group memory (Batcher's bitonic network, 1968).

struct Pair {
    key: u32,
    value: u32,
}

@group(0) @binding(0) var<storage, read_write> pairs: array<Pair>;

const N: u32 = 256u;
var<workgroup> keys: array<u32, N>;
var<workgroup> values: array<u32, N>;

fn order(a: u32, b: u32, ascending: bool) {
    let swap = (keys[a] > keys[b]) == ascending;
    if swap {
        let k = keys[a];
        keys[a] = keys[b];
        keys[b] = k;
        let v = values[a];
        values[a] = values[b];
        values[b] = v;
    }
}

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) t: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let base = group.x * N;
    for (var i = t; i < N; i += 128u) {
        let p = pairs[base + i];
        keys[i] = p.key;
        values[i] = p.value;
    }
    workgroupBarrier();

    for (var size = 2u; size <= N; size <<= 1u) {
        for (var stride = size / 2u; stride > 0u; stride >>= 1u) {
            // The lower element of the pair of this invocation.
            let a = 2u * t - (t & (stride - 1u));
            order(a, a + stride, (a & size) == 0u);
            workgroupBarrier();
        }
    }

    for (var i = t; i < N; i += 128u) {
        pairs[base + i] = Pair(keys[i], values[i]);
    }
}
