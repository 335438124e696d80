#version 450
layout(location = 0) in vec2 v_uv;
layout(location = 0) out vec4 color;
layout(set = 0, binding = 0) uniform sampler2D sharp;
layout(set = 0, binding = 1) uniform sampler2D glow;

void main() {
    vec3 c = texture(sharp, v_uv).rgb + 0.9 * texture(glow, v_uv).rgb;
    color = vec4(1.0 - exp(-1.6 * c), 1.0);
}
