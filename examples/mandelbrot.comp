#version 450
// Escape times of the Mandelbrot set, smoothed, as 24.8 fixed point. Neighbouring lanes leave the loop at very
// different times.

layout(local_size_x = 16, local_size_y = 4) in;

layout(push_constant) uniform View {
    vec2 centre;
    float scale; // width of a pixel
    uint width;
    uint height;
    uint limit;
} view;

layout(std430, set = 0, binding = 0) writeonly buffer Image { uint pixels[]; };

// The cardioid and the circle to its left belong to the set: no need to iterate there.
bool inside(vec2 c) {
    float y2 = c.y * c.y;
    float x = c.x - 0.25;
    float q = x * x + y2;
    return q * (q + x) <= 0.25 * y2 || (c.x + 1.0) * (c.x + 1.0) + y2 <= 0.0625;
}

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= view.width || at.y >= view.height) {
        return;
    }
    vec2 c = view.centre + (vec2(at) - 0.5 * vec2(view.width, view.height)) * view.scale;
    uint n = 0u;
    vec2 z = vec2(0.0);
    float r2 = 0.0;
    if (inside(c)) {
        n = view.limit;
    } else {
        for (; n < view.limit; ++n) {
            z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
            r2 = dot(z, z);
            if (r2 > 256.0) {
                break;
            }
        }
    }
    uint value = n << 8u;
    if (n < view.limit) {
        float smoothed = log2(0.5 * log2(r2)) - 2.0;
        value += uint(clamp(1.0 - smoothed, 0.0, 1.0) * 255.0);
    }
    pixels[at.y * view.width + at.x] = value;
}
