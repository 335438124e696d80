#version 450
// What the lighting needs to know of each pixel: place, normal, colour.
layout(location = 0) in vec3 v_world;
layout(location = 1) in vec3 v_normal;
layout(location = 2) in vec2 v_uv;
layout(location = 0) out vec4 place;
layout(location = 1) out vec4 direction;
layout(location = 2) out vec4 albedo;
layout(set = 0, binding = 1) uniform sampler2D pattern;
layout(set = 0, binding = 2) uniform Surface {
    vec3 tint;
    float repeats;
};

void main() {
    place = vec4(v_world, 1.0);
    direction = vec4(normalize(v_normal), 1.0);
    albedo = vec4(texture(pattern, v_uv * repeats).rgb * tint, 1.0);
}
