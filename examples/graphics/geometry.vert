#version 450
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec2 uv;
layout(location = 0) out vec3 v_world;
layout(location = 1) out vec3 v_normal;
layout(location = 2) out vec2 v_uv;
layout(set = 0, binding = 0) uniform Object {
    mat4 model;
    mat4 normal_matrix;
    mat4 view_projection;
};

void main() {
    vec4 world = model * vec4(position, 1.0);
    v_world = world.xyz;
    v_normal = mat3(normal_matrix) * normal;
    v_uv = uv;
    gl_Position = view_projection * world;
}
