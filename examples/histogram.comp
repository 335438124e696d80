#version 450
// Histogram of bytes: each work-group counts in shared memory, then adds its counts to the result. Also finds the
// smallest and the largest word. The result buffer starts as the previous histogram.

layout(local_size_x = 64) in;

layout(push_constant) uniform Params { uint words; } params;

layout(std430, set = 0, binding = 0) readonly buffer Input { uint words[]; };
layout(std430, set = 0, binding = 1) buffer Result {
    uint smallest;
    uint largest;
    uint count[256];
} result;

shared uint local_count[256];

void main() {
    for (uint i = gl_LocalInvocationIndex; i < 256u; i += 64u) {
        local_count[i] = 0u;
    }
    barrier();

    uint stride = gl_NumWorkGroups.x * 64u;
    for (uint i = gl_GlobalInvocationID.x; i < params.words; i += stride) {
        uint w = words[i];
        atomicMin(result.smallest, w);
        atomicMax(result.largest, w);
        for (int k = 0; k < 4; ++k) {
            atomicAdd(local_count[bitfieldExtract(w, 8 * k, 8)], 1u);
        }
    }
    barrier();

    for (uint i = gl_LocalInvocationIndex; i < 256u; i += 64u) {
        uint n = local_count[i];
        if (n != 0u) {
            atomicAdd(result.count[i], n);
        }
    }
}
