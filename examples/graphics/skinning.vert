#version 300 es
// A tube that four bones bend; how much each bone counts follows from the height in the pose of rest.
in vec3 position;
in vec3 normal;
in vec2 uv;
uniform mat4 u_bones[4];
uniform mat4 u_view_projection;
out vec3 v_normal;
out vec3 v_world;
out vec2 v_uv;

void main() {
    vec3 rest = vec3(position.x * 0.45, position.y * 2.0, position.z * 0.45);
    float along = clamp((rest.y + 2.0) * 0.75, 0.0, 2.999);
    int first = int(along);
    float weight = smoothstep(0.0, 1.0, fract(along));
    mat4 bone = u_bones[first] * (1.0 - weight) + u_bones[first + 1] * weight;
    vec4 world = bone * vec4(rest, 1.0);
    v_normal = mat3(bone) * vec3(normal.x, normal.y * 0.25, normal.z);
    v_world = world.xyz;
    v_uv = uv;
    gl_Position = u_view_projection * world;
}
