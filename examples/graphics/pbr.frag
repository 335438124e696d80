#version 450
// Metal and roughness, one light with a shadow map (nine comparisons), a sky of two colours.
layout(location = 0) in vec3 v_world;
layout(location = 1) in vec3 v_normal;
layout(location = 2) in vec4 v_light;
layout(location = 0) out vec4 color;
layout(set = 0, binding = 2) uniform Material {
    vec4 albedo;
    float metallic;
    float roughness;
    vec3 light_direction;
    vec3 eye;
};
layout(set = 0, binding = 3) uniform sampler2DShadow shadow_map;

const float PI = 3.14159265;

float lit() {
    vec3 p = v_light.xyz / v_light.w;
    vec2 uv = p.xy * 0.5 + 0.5;
    float texel = 1.0 / float(textureSize(shadow_map, 0).x);
    float sum = 0.0;
    for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x)
            sum += texture(shadow_map, vec3(uv + vec2(x, y) * texel, p.z - 0.004));
    return sum / 9.0;
}

float spread(float n_h, float a) {
    float a2 = a * a;
    float d = n_h * n_h * (a2 - 1.0) + 1.0;
    return a2 / (PI * d * d);
}

float hidden(float n_v, float n_l, float roughness) {
    float k = (roughness + 1.0) * (roughness + 1.0) / 8.0;
    return 1.0 / ((n_v * (1.0 - k) + k) * (n_l * (1.0 - k) + k) * 4.0);
}

void main() {
    vec3 n = normalize(v_normal);
    vec3 v = normalize(eye - v_world);
    vec3 l = normalize(light_direction);
    vec3 h = normalize(v + l);
    float n_l = max(dot(n, l), 0.0);
    float n_v = max(dot(n, v), 1e-3);
    vec3 base = albedo.rgb;
    if (albedo.a > 1.5) {
        float odd = mod(floor(v_world.x) + floor(v_world.z), 2.0);
        base *= mix(0.45, 1.0, odd);
    }
    vec3 f0 = mix(vec3(0.04), base, metallic);
    vec3 f = f0 + (1.0 - f0) * pow(1.0 - max(dot(v, h), 0.0), 5.0);
    vec3 shine = f * spread(max(dot(n, h), 0.0), roughness * roughness) * hidden(n_v, n_l, roughness);
    vec3 diffuse = (1.0 - f) * (1.0 - metallic) * base / PI;
    vec3 direct = (diffuse + shine) * 3.5 * n_l * lit();
    vec3 up = mix(vec3(0.25, 0.2, 0.16), vec3(0.45, 0.6, 0.85), reflect(-v, n).y * 0.5 + 0.5);
    vec3 around = mix(vec3(0.2), vec3(0.45, 0.5, 0.6), n.y * 0.5 + 0.5) * base * (1.0 - metallic);
    vec3 edge = f0 + (max(vec3(1.0 - roughness), f0) - f0) * pow(1.0 - n_v, 5.0);
    vec3 c = direct + 0.5 * around + up * edge * (1.0 - 0.6 * roughness);
    c = c / (c + 0.6);
    color = vec4(pow(c, vec3(1.0 / 1.8)), 1.0);
}
