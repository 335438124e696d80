#version 450
// Sphere tracing of a small scene with a soft shadow: three shapes over a plane, one light, RGBA8 out.

layout(local_size_x = 8, local_size_y = 8) in;

layout(std140, set = 0, binding = 0) uniform Scene {
    vec4 spheres[2]; // centre, radius
    vec4 box;        // centre, half edge
    vec4 light;      // direction, ambient
    uvec2 size;
} scene;

layout(std430, set = 0, binding = 1) writeonly buffer Image { uint pixels[]; };

const int STEPS = 48;
const float FAR = 20.0;
const float NEAR_ENOUGH = 0.001;

// Distance, and which shape is the closest one.
vec2 nearest(vec3 p) {
    vec2 best = vec2(p.y + 1.0, 0.0);
    for (int i = 0; i < 2; ++i) {
        float d = length(p - scene.spheres[i].xyz) - scene.spheres[i].w;
        if (d < best.x) {
            best = vec2(d, float(i + 1));
        }
    }
    vec3 q = abs(p - scene.box.xyz) - scene.box.w;
    float d = length(max(q, 0.0)) + min(max(q.x, max(q.y, q.z)), 0.0);
    return d < best.x ? vec2(d, 3.0) : best;
}

vec3 normal_at(vec3 p) {
    vec2 e = vec2(0.0005, -0.0005);
    return normalize(e.xyy * nearest(p + e.xyy).x + e.yyx * nearest(p + e.yyx).x +
                     e.yxy * nearest(p + e.yxy).x + e.xxx * nearest(p + e.xxx).x);
}

float shadow(vec3 from, vec3 towards) {
    float light = 1.0;
    float t = 0.05;
    for (int i = 0; i < 24; ++i) {
        float d = nearest(from + towards * t).x;
        light = min(light, 8.0 * d / t);
        t += clamp(d, 0.02, 0.5);
        if (light < 0.005 || t > 6.0) {
            break;
        }
    }
    return clamp(light, 0.0, 1.0);
}

vec3 colour(float shape, vec3 p) {
    switch (int(shape)) {
    case 0: {
        float check = mod(floor(p.x) + floor(p.z), 2.0);
        return mix(vec3(0.2), vec3(0.8), check);
    }
    case 1:
        return vec3(0.9, 0.3, 0.2);
    case 2:
        return vec3(0.2, 0.5, 0.9);
    default:
        return vec3(0.9, 0.8, 0.3);
    }
}

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    if (any(greaterThanEqual(at, scene.size))) {
        return;
    }
    vec2 uv = (2.0 * vec2(at) + 1.0 - vec2(scene.size)) / float(scene.size.y);
    vec3 eye = vec3(0.0, 0.5, 4.0);
    vec3 ray = normalize(vec3(uv.x, -uv.y, -1.8));
    float t = 0.0;
    vec2 hit = vec2(FAR, -1.0);
    for (int i = 0; i < STEPS && t < FAR; ++i) {
        vec2 d = nearest(eye + ray * t);
        if (d.x < NEAR_ENOUGH * t) {
            hit = vec2(t, d.y);
            break;
        }
        t += d.x;
    }
    vec3 shade = mix(vec3(0.7, 0.8, 1.0), vec3(0.3, 0.4, 0.7), clamp(ray.y, 0.0, 1.0));
    if (hit.y >= 0.0) {
        vec3 p = eye + ray * hit.x;
        vec3 n = normal_at(p);
        vec3 l = normalize(scene.light.xyz);
        float diffuse = max(dot(n, l), 0.0);
        if (diffuse > 0.0) {
            diffuse *= shadow(p, l);
        }
        shade = colour(hit.y, p) * (scene.light.w + diffuse);
        shade = mix(shade, vec3(0.7, 0.8, 1.0), 1.0 - exp(-0.002 * hit.x * hit.x * hit.x));
    }
    pixels[at.y * scene.size.x + at.x] = packUnorm4x8(vec4(sqrt(shade), 1.0));
}
