#version 450
// Twenty coloured lights over what the first pass left.
layout(location = 0) in vec2 v_uv;
layout(location = 0) out vec4 color;
layout(set = 0, binding = 0) uniform sampler2D places;
layout(set = 0, binding = 1) uniform sampler2D directions;
layout(set = 0, binding = 2) uniform sampler2D albedos;
layout(push_constant) uniform Push {
    vec3 eye;
    float time;
};

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    vec4 place = texelFetch(places, at, 0);
    if (place.w == 0.0) {
        color = vec4(mix(vec3(0.01, 0.01, 0.03), vec3(0.05, 0.03, 0.09), v_uv.y), 1.0);
        return;
    }
    vec3 n = texelFetch(directions, at, 0).xyz;
    vec3 base = texelFetch(albedos, at, 0).rgb;
    vec3 v = normalize(eye - place.xyz);
    vec3 sum = base * 0.05;
    for (int k = 0; k < 20; ++k) {
        float a = float(k) * 2.39996 + time;
        float r = 0.6 + 0.19 * float(k);
        vec3 light = vec3(cos(a) * r, 0.35 + 0.25 * sin(float(k) * 1.7 + time), sin(a) * r);
        vec3 tint = 0.55 + 0.45 * cos(vec3(0.0, 2.1, 4.2) + float(k) * 1.3);
        vec3 l = light - place.xyz;
        float d2 = dot(l, l);
        l *= inversesqrt(d2);
        float fade = max(1.0 - d2 / 4.0, 0.0);
        float diffuse = max(dot(n, l), 0.0);
        float shine = pow(max(dot(n, normalize(l + v)), 0.0), 32.0);
        sum += tint * (base * diffuse + 0.4 * shine) * fade * fade / (0.35 + d2);
    }
    color = vec4(sqrt(sum / (1.0 + 0.4 * sum)), 1.0);
}
