#version 450
// Steps down along the ray through the heights until it is below the surface, then back up towards the light.
layout(location = 0) in vec2 v_uv;
layout(location = 1) in vec3 v_eye;
layout(location = 2) in vec3 v_light;
layout(location = 0) out vec4 color;
layout(set = 0, binding = 0) uniform sampler2D bricks;
layout(set = 0, binding = 1) uniform sampler2D relief;

const float DEPTH = 0.06;
const int STEPS = 24;

float below(vec2 uv) {
    return 1.0 - textureLod(bricks, uv, 0.0).a;
}

void main() {
    vec3 v = normalize(v_eye);
    vec2 slide = vec2(-v.x, v.y) / max(v.z, 0.15) * DEPTH;
    vec2 dx = dFdx(v_uv), dy = dFdy(v_uv);
    float depth = 0.0, last = 0.0;
    vec2 uv = v_uv;
    float down = below(uv);
    for (int k = 0; k < STEPS && depth < down; ++k) {
        last = down - depth;
        depth += 1.0 / float(STEPS);
        uv += slide / float(STEPS);
        down = below(uv);
    }
    float over = depth - down;
    float back = over / max(over + last, 1e-4);
    uv -= slide / float(STEPS) * back;

    vec3 l = normalize(v_light);
    vec2 climb = vec2(l.x, -l.y) / max(l.z, 0.15) * DEPTH;
    float start = below(uv);
    float shadow = 1.0;
    for (int k = 1; k <= 12; ++k) {
        float t = float(k) / 12.0;
        float here = start * (1.0 - t);
        if (below(uv + climb * start * t) < here - 0.03) shadow = 0.35;
    }
    vec3 n = textureGrad(relief, uv, dx, dy).xyz * 2.0 - 1.0;
    n = normalize(vec3(n.x, -n.y, n.z));
    vec3 base = textureGrad(bricks, uv, dx, dy).rgb;
    float diffuse = max(dot(n, l), 0.0) * shadow;
    float shine = pow(max(dot(n, normalize(l + v)), 0.0), 24.0) * shadow;
    color = vec4(base * (0.22 + 0.95 * diffuse) + 0.15 * shine, 1.0);
}
