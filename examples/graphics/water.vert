#version 300 es
// Four waves, added; normals from their slopes.
in vec3 position;
uniform mat4 u_view_projection;
uniform float u_time;
uniform float u_size;
out vec3 v_world;
out vec3 v_normal;

void wave(vec2 p, vec2 way, float length, float height, inout float y, inout vec2 slope) {
    float k = 6.2831853 / length;
    float phase = dot(way, p) * k + u_time * sqrt(9.8 * k);
    y += height * sin(phase);
    slope += way * (height * k * cos(phase));
}

void main() {
    vec2 p = position.xz * u_size;
    float y = 0.0;
    vec2 slope = vec2(0.0);
    wave(p, vec2(0.8, 0.6), 5.0, 0.2, y, slope);
    wave(p, vec2(-0.6, 0.8), 3.1, 0.1, y, slope);
    wave(p, vec2(0.98, -0.2), 1.9, 0.05, y, slope);
    wave(p, vec2(0.28, 0.96), 1.1, 0.025, y, slope);
    v_world = vec3(p.x, y, p.y);
    v_normal = vec3(-slope.x, 1.0, -slope.y);
    gl_Position = u_view_projection * vec4(v_world, 1.0);
}
