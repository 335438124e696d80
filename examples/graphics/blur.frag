#version 450
// Only what is bright, spread along one axis.
layout(location = 0) in vec2 v_uv;
layout(location = 0) out vec4 color;
layout(push_constant) uniform Push {
    vec2 direction;
    float threshold;
};
layout(set = 0, binding = 0) uniform sampler2D source;

void main() {
    vec3 sum = vec3(0.0);
    float weights = 0.0;
    for (int k = -6; k <= 6; ++k) {
        float w = exp(-float(k * k) / 14.0);
        vec3 c = texture(source, v_uv + direction * float(k)).rgb;
        sum += w * max(c - threshold, 0.0);
        weights += w;
    }
    color = vec4(sum / weights, 1.0);
}
