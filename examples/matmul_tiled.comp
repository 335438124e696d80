#version 450
// C = A * B by tiles of 16 x 16 in shared memory. The sizes need not be multiples of the tile.

layout(local_size_x = 16, local_size_y = 16) in;

layout(push_constant) uniform Sizes {
    uint rows;   // of A and C
    uint inner;  // columns of A, rows of B
    uint cols;   // of B and C
} sizes;

layout(std430, set = 0, binding = 0) readonly buffer A { float a[]; };
layout(std430, set = 0, binding = 1) readonly buffer B { float b[]; };
layout(std430, set = 0, binding = 2) writeonly buffer C { float c[]; };

const uint TILE = 16u;
shared float tile_a[TILE][TILE];
shared float tile_b[TILE][TILE];

void main() {
    uint x = gl_LocalInvocationID.x;
    uint y = gl_LocalInvocationID.y;
    uint col = gl_GlobalInvocationID.x;
    uint row = gl_GlobalInvocationID.y;

    float sum = 0.0;
    for (uint start = 0u; start < sizes.inner; start += TILE) {
        uint ka = start + x;
        uint kb = start + y;
        tile_a[y][x] = row < sizes.rows && ka < sizes.inner ? a[row * sizes.inner + ka] : 0.0;
        tile_b[y][x] = kb < sizes.inner && col < sizes.cols ? b[kb * sizes.cols + col] : 0.0;
        barrier();
        for (uint k = 0u; k < TILE; ++k) {
            sum += tile_a[y][k] * tile_b[k][x];
        }
        barrier();
    }
    if (row < sizes.rows && col < sizes.cols) {
        c[row * sizes.cols + col] = sum;
    }
}
