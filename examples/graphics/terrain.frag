#version 450
layout(location = 0) in vec3 v_world;
layout(location = 1) in vec3 v_normal;
layout(location = 0) out vec4 color;
layout(set = 0, binding = 1) uniform Frame {
    mat4 view_projection;
    vec3 eye;
    float size;
    float relief;
};
layout(set = 0, binding = 2) uniform sampler2D detail;

void main() {
    vec3 n = normalize(v_normal);
    float steep = 1.0 - n.y;
    float h = v_world.y / relief;
    float rough = texture(detail, v_world.xz * 0.7).r;
    vec3 grass = mix(vec3(0.18, 0.34, 0.1), vec3(0.35, 0.42, 0.15), rough);
    vec3 rock = mix(vec3(0.3, 0.27, 0.24), vec3(0.5, 0.46, 0.42), rough);
    vec3 ground = mix(grass, rock, smoothstep(0.12, 0.3, steep + 0.15 * (rough - 0.5)));
    ground = mix(ground, vec3(0.95, 0.96, 1.0), smoothstep(0.42, 0.5, h + 0.1 * (rough - 0.5)) * smoothstep(0.45, 0.25, steep));
    vec3 sun = normalize(vec3(0.6, 0.55, 0.3));
    float light = 0.3 + 0.9 * max(dot(n, sun), 0.0);
    float far = length(v_world - eye);
    vec3 haze = vec3(0.66, 0.76, 0.88);
    color = vec4(mix(ground * light, haze, 1.0 - exp(-0.004 * far * far)), 1.0);
}
