#version 450
// Heights come from a texture; the normal from its neighbours.
layout(location = 0) in vec3 position;
layout(location = 2) in vec2 uv;
layout(location = 0) out vec3 v_world;
layout(location = 1) out vec3 v_normal;
layout(set = 0, binding = 0) uniform sampler2D heights;
layout(set = 0, binding = 1) uniform Frame {
    mat4 view_projection;
    vec3 eye;
    float size;
    float relief;
};

float height(vec2 at) {
    float h = textureLod(heights, at, 0.0).r;
    return h * h * relief;
}

void main() {
    float step_uv = 1.0 / 64.0;
    float dx = height(uv + vec2(step_uv, 0.0)) - height(uv - vec2(step_uv, 0.0));
    float dz = height(uv + vec2(0.0, step_uv)) - height(uv - vec2(0.0, step_uv));
    v_normal = vec3(-dx, 4.0 * size * step_uv, -dz);
    v_world = vec3(position.x * size, height(uv), position.z * size);
    gl_Position = view_projection * vec4(v_world, 1.0);
}
