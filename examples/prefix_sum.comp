#version 450
// Exclusive prefix sum of blocks of 256 numbers, two for each invocation (the up-sweep and down-sweep of Blelloch,
// 1990). Each work-group also writes the sum of its block.

layout(local_size_x = 128) in;

layout(std430, set = 0, binding = 0) readonly buffer Input { uint data[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Output { uint sums[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Totals { uint totals[]; };

const uint N = 256u;
shared uint tree[N];

void main() {
    uint t = gl_LocalInvocationID.x;
    uint base = gl_WorkGroupID.x * N;
    tree[2u * t] = data[base + 2u * t];
    tree[2u * t + 1u] = data[base + 2u * t + 1u];

    uint step = 1u;
    for (uint active_items = N / 2u; active_items > 0u; active_items /= 2u) {
        barrier();
        if (t < active_items) {
            uint left = step * (2u * t + 1u) - 1u;
            uint right = step * (2u * t + 2u) - 1u;
            tree[right] += tree[left];
        }
        step *= 2u;
    }

    if (t == 0u) {
        totals[gl_WorkGroupID.x] = tree[N - 1u];
        tree[N - 1u] = 0u;
    }

    for (uint active_items = 1u; active_items < N; active_items *= 2u) {
        step /= 2u;
        barrier();
        if (t < active_items) {
            uint left = step * (2u * t + 1u) - 1u;
            uint right = step * (2u * t + 2u) - 1u;
            uint old = tree[left];
            tree[left] = tree[right];
            tree[right] += old;
        }
    }
    barrier();

    sums[base + 2u * t] = tree[2u * t];
    sums[base + 2u * t + 1u] = tree[2u * t + 1u];
}
