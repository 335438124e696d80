#version 450
// Light and eye in the space of the surface.
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec2 uv;
layout(location = 4) in vec3 tangent;
layout(location = 0) out vec2 v_uv;
layout(location = 1) out vec3 v_eye;
layout(location = 2) out vec3 v_light;
layout(push_constant) uniform Push {
    mat4 model;
    mat4 view_projection;
    vec3 eye;
    vec3 light;
};

void main() {
    vec3 world = (model * vec4(position, 1.0)).xyz;
    vec3 n = normalize(mat3(model) * normal);
    vec3 t = normalize(mat3(model) * tangent);
    mat3 to_surface = transpose(mat3(t, cross(n, t), n));
    v_uv = uv;
    v_eye = to_surface * (eye - world);
    v_light = to_surface * (light - world);
    gl_Position = view_projection * vec4(world, 1.0);
}
