#version 450
// One step of a gravitational n-body simulation: all pairs, the other bodies in tiles of 64 through shared memory.

layout(local_size_x = 64) in;

layout(std140, set = 0, binding = 0) uniform Params {
    float dt;
    float softening;
    float damping;
    uint count;
} params;

struct Body {
    vec4 place;    // xyz, mass
    vec4 velocity; // xyz, unused
};

layout(std430, set = 0, binding = 1) readonly buffer Before { Body before[]; };
layout(std430, set = 0, binding = 2) writeonly buffer After { Body after[]; };

shared vec4 tile[64];

vec3 pull(vec3 at, vec4 other) {
    vec3 d = other.xyz - at;
    float r2 = dot(d, d) + params.softening * params.softening;
    float inv = inversesqrt(r2);
    return d * (other.w * inv * inv * inv);
}

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint mine = min(i, params.count - 1u);
    Body body = before[mine];
    vec3 force = vec3(0.0);
    for (uint start = 0u; start < params.count; start += 64u) {
        uint j = start + gl_LocalInvocationIndex;
        tile[gl_LocalInvocationIndex] = j < params.count ? before[j].place : vec4(0.0);
        barrier();
        for (uint k = 0u; k < 64u; ++k) {
            force += pull(body.place.xyz, tile[k]);
        }
        barrier();
    }
    if (i < params.count) {
        vec3 v = (body.velocity.xyz + force * params.dt) * params.damping;
        after[i].place = vec4(body.place.xyz + v * params.dt, body.place.w);
        after[i].velocity = vec4(v, 0.0);
    }
}
