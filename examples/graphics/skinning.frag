#version 300 es
precision highp float;
in vec2 v_uv;
in vec3 v_world;
in vec3 v_normal;
uniform vec3 u_eye;
out vec4 o_color;

void main() {
    vec3 n = normalize(v_normal);
    vec3 v = normalize(u_eye - v_world);
    vec3 l = normalize(vec3(0.5, 0.9, 0.7));
    float rings = smoothstep(0.35, 0.45, abs(fract(v_uv.y * 9.0) - 0.5));
    float spots = smoothstep(0.2, 0.26, length(fract(v_uv * vec2(8.0, 9.0)) - 0.5));
    vec3 skin = mix(vec3(0.95, 0.75, 0.2), vec3(0.15, 0.5, 0.25), mix(1.0, spots, 1.0 - rings));
    float diffuse = max(dot(n, l) * 0.6 + 0.4, 0.0);
    float rim = pow(1.0 - max(dot(n, v), 0.0), 3.0);
    float shine = pow(max(dot(n, normalize(l + v)), 0.0), 40.0);
    o_color = vec4(skin * diffuse + rim * vec3(0.2, 0.3, 0.4) + 0.5 * shine, 1.0);
}
