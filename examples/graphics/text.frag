#extension GL_OES_standard_derivatives : enable
// A word from distances to its outlines: sharp at every size, with an outline, a glow and a shadow.
precision highp float;
varying vec2 v_uv;
uniform sampler2D u_distances;
uniform vec3 u_fill;

void main() {
    vec2 uv = vec2(v_uv.x, 0.5 + (v_uv.y - 0.5) * 0.5);
    float d = texture2D(u_distances, uv).r;
    float soft = fwidth(d) * 0.7;
    float fill = smoothstep(0.5 - soft, 0.5 + soft, d);
    float line = smoothstep(0.41 - soft, 0.41 + soft, d);
    float shadow = smoothstep(0.3, 0.55, texture2D(u_distances, uv - vec2(0.012, 0.02)).r);
    float glow = smoothstep(0.05, 0.5, d);
    vec3 paper = mix(vec3(0.12, 0.14, 0.24), vec3(0.2, 0.12, 0.3), v_uv.y);
    paper += 0.05 * step(0.96, max(fract(v_uv.x * 12.0), fract(v_uv.y * 12.0)));
    vec3 c = mix(paper, vec3(0.3, 0.5, 0.9), glow * 0.45);
    c = mix(c, vec3(0.02), shadow * 0.7);
    c = mix(c, vec3(0.05, 0.03, 0.1), line);
    c = mix(c, mix(u_fill, vec3(1.0), clamp(0.9 - v_uv.y * 1.2, 0.0, 1.0)), fill);
    gl_FragColor = vec4(c, 1.0);
}
