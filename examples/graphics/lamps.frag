#version 450
// A street of lamps in the night, brighter than a screen can show.
layout(location = 0) in vec2 v_uv;
layout(location = 0) out vec4 color;

void main() {
    vec2 p = v_uv * 2.0 - 1.0;
    vec3 c = mix(vec3(0.02, 0.02, 0.06), vec3(0.1, 0.06, 0.12), v_uv.y);
    for (int k = 1; k <= 6; ++k) {
        float far = float(k);
        float x = 0.95 / far * 1.3;
        float top = 0.25 - 0.9 / far;
        float r = 0.14 / far;
        for (float side = -1.0; side <= 1.0; side += 2.0) {
            vec2 q = p - vec2(side * x, top);
            float post = step(abs(q.x), 0.018 / far * 1.5) * step(0.0, q.y) * step(p.y, 0.25 + 0.6 / far);
            c = mix(c, vec3(0.03, 0.03, 0.04), post);
            vec3 tint = mix(vec3(1.0, 0.55, 0.2), vec3(0.4, 0.7, 1.0), side * 0.5 + 0.5);
            c += tint * (6.0 * step(length(q), r));
        }
    }
    float road = step(0.3, p.y) * step(abs(p.x), (p.y - 0.2) * 1.1);
    float line = step(abs(p.x), 0.02 * (p.y - 0.2) * 3.0) * step(0.5, fract(1.2 / (p.y - 0.2 + 0.01)));
    c = mix(c, vec3(0.07, 0.07, 0.09) + line * 0.5, road);
    color = vec4(c, 1.0);
}
