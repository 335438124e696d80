// A room of boxes, and how much of the surroundings each place sees: first position and normal seen from the eye, then sixteen
// probes around each pixel.

struct Object {
    model_view: mat4x4f,
    projection: mat4x4f,
    normals: mat4x4f,
}
@group(0) @binding(0) var<uniform> object: Object;

struct Corner {
    @builtin(position) clip: vec4f,
    @location(0) view: vec3f,
    @location(1) normal: vec3f,
}

@vertex
fn geometry_vertex(@location(0) position: vec3f, @location(1) normal: vec3f) -> Corner {
    let view = object.model_view * vec4f(position, 1.0);
    return Corner(object.projection * view, view.xyz, (object.normals * vec4f(normal, 0.0)).xyz);
}

struct Surface {
    @location(0) view: vec4f,
    @location(1) normal: vec4f,
}

@fragment
fn geometry(corner: Corner) -> Surface {
    return Surface(vec4f(corner.view, 1.0), vec4f(normalize(corner.normal), 1.0));
}

struct Screen {
    @builtin(position) clip: vec4f,
    @location(0) uv: vec2f,
}

@vertex
fn screen_vertex(@location(0) position: vec3f, @location(2) uv: vec2f) -> Screen {
    return Screen(vec4f(position, 1.0), uv);
}

struct Lens {
    projection: mat4x4f,
    radius: f32,
}
@group(0) @binding(1) var<uniform> lens: Lens;
@group(0) @binding(2) var view_map: texture_2d<f32>;
@group(0) @binding(3) var normal_map: texture_2d<f32>;
@group(0) @binding(4) var noise_map: texture_2d<f32>;

// In integers, so that it is the same on every machine.
fn hash(n: u32) -> f32 {
    var h = n * 747796405u + 2891336453u;
    h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u;
    return f32(((h >> 22u) ^ h) & 0xffffu) / 65536.0;
}

@fragment
fn occlusion(screen: Screen) -> @location(0) vec4f {
    let size = vec2f(textureDimensions(view_map));
    let texel = vec2i(screen.clip.xy);
    let place = textureLoad(view_map, texel, 0);
    if place.w == 0.0 {
        return vec4f(0.75, 0.8, 0.85, 1.0);
    }
    let n = textureLoad(normal_map, texel, 0).xyz;
    let turn = textureLoad(noise_map, texel % vec2i(textureDimensions(noise_map)), 0).x * 6.2831853;
    let side = normalize(cross(n, select(vec3f(0.0, 1.0, 0.0), vec3f(1.0, 0.0, 0.0), abs(n.y) > 0.9)));
    let other = cross(n, side);
    var hidden = 0.0;
    for (var k = 0; k < 16; k++) {
        let f = f32(k);
        let angle = turn + f * 2.39996;
        let up = 0.15 + 0.85 * hash(u32(k + 1));
        let flat = sqrt(max(1.0 - up * up, 0.0));
        let way = side * (cos(angle) * flat) + other * (sin(angle) * flat) + n * up;
        let probe = place.xyz + way * (lens.radius * (0.2 + 0.8 * (f + 1.0) / 16.0));
        let clip = lens.projection * vec4f(probe, 1.0);
        let at = vec2i((clip.xy / clip.w * 0.5 + 0.5) * size);
        let seen = textureLoad(view_map, clamp(at, vec2i(0), vec2i(size) - 1), 0);
        let near = smoothstep(0.0, 1.0, lens.radius / max(abs(place.z - seen.z), 1e-4));
        if seen.w != 0.0 && seen.z > probe.z + 0.02 {
            hidden += near;
        }
    }
    let open = pow(1.0 - hidden / 16.0, 1.6);
    let sun = max(dot(n, normalize(vec3f(0.4, 0.8, 0.5))), 0.0);
    return vec4f(vec3f(0.95, 0.92, 0.86) * open * (0.55 + 0.45 * sun), 1.0);
}
