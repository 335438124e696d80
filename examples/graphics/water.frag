#version 300 es
precision highp float;
in vec3 v_normal;
in vec3 v_world;
uniform sampler2D u_ripples;
uniform vec3 u_eye;
uniform float u_time;
out vec4 o_color;

vec3 sky(vec3 way) {
    float up = max(way.y, 0.0);
    vec3 c = mix(vec3(0.95, 0.75, 0.55), vec3(0.2, 0.4, 0.75), pow(up, 0.5));
    float sun = max(dot(way, normalize(vec3(0.2, 0.25, -1.0))), 0.0);
    return c + vec3(1.0, 0.7, 0.4) * (pow(sun, 60.0) * 1.5 + pow(sun, 8.0) * 0.3);
}

void main() {
    vec2 a = texture(u_ripples, v_world.xz * 0.21 + u_time * 0.02).xy - 0.5;
    vec2 b = texture(u_ripples, v_world.zx * 0.37 - u_time * 0.03).xy - 0.5;
    vec3 n = normalize(v_normal + vec3(a.x + b.x, 0.0, a.y + b.y) * 0.5);
    vec3 v = normalize(u_eye - v_world);
    float facing = max(dot(n, v), 0.0);
    float fresnel = 0.03 + 0.97 * pow(1.0 - facing, 5.0);
    vec3 deep = mix(vec3(0.01, 0.08, 0.12), vec3(0.05, 0.3, 0.3), clamp(v_world.y * 1.5 + 0.4, 0.0, 1.0));
    vec3 c = mix(deep, sky(reflect(-v, n)), fresnel);
    float far = length(u_eye - v_world);
    c = mix(c, vec3(0.95, 0.75, 0.55), smoothstep(9.0, 20.0, far));
    o_color = vec4(c, 1.0);
}
