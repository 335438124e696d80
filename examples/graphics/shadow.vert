#version 450
// Depth from the light, for pbr.frag.
layout(location = 0) in vec3 position;
layout(push_constant) uniform Push { mat4 light_model; };

void main() {
    gl_Position = light_model * vec4(position, 1.0);
}
