// Light over a large range in a first pass; a curve that brings it to the screen in a second one.

struct Screen {
    @builtin(position) clip: vec4f,
    @location(0) uv: vec2f,
}

@vertex
fn vertex(@location(0) position: vec3f, @location(2) uv: vec2f) -> Screen {
    return Screen(vec4f(position, 1.0), uv);
}

fn hue(h: f32) -> vec3f {
    return clamp(abs(fract(h + vec3f(0.0, 0.6667, 0.3333)) * 6.0 - 3.0) - 1.0, vec3f(0.0), vec3f(1.0));
}

// Twelve bulbs in a ring, each next one a bit brighter than the one before, over a wall.
@fragment
fn light(screen: Screen) -> @location(0) vec4f {
    let p = screen.uv * 2.0 - 1.0;
    var c = vec3f(0.02) + 0.02 * vec3f(f32((i32(floor(screen.uv.x * 8.0)) ^ i32(floor(screen.uv.y * 8.0))) & 1));
    for (var k = 0; k < 12; k++) {
        let a = f32(k) / 12.0 * 6.2831853 - 1.5707963;
        let d = length(p - 0.68 * vec2f(cos(a), sin(a)));
        let power = exp2(f32(k) * 0.6 - 3.0);
        c += (hue(f32(k) / 12.0) * 0.9 + 0.1) * power * (0.0035 / (d * d + 0.002));
    }
    return vec4f(c, 1.0);
}

struct Settings {
    exposure: f32,
    white: f32,
}
@group(0) @binding(0) var<uniform> settings: Settings;
@group(0) @binding(1) var hdr: texture_2d<f32>;
@group(0) @binding(2) var hdr_sampler: sampler;

fn curve(x: vec3f) -> vec3f {
    return x * (1.0 + x / (settings.white * settings.white)) / (1.0 + x);
}

@fragment
fn develop(screen: Screen) -> @location(0) vec4f {
    let c = textureSample(hdr, hdr_sampler, screen.uv).rgb * settings.exposure;
    let brightness = dot(c, vec3f(0.2126, 0.7152, 0.0722));
    let kept = c * (curve(vec3f(brightness)).x / max(brightness, 1e-4));
    let each = curve(c);
    let mapped = mix(kept, each, 0.6);
    // Left of the middle what would be seen without the curve.
    let plain = min(c, vec3f(1.0));
    let chosen = select(mapped, plain, screen.uv.x < 0.5 && abs(screen.uv.y - 0.5) < 0.12);
    return vec4f(pow(clamp(chosen, vec3f(0.0), vec3f(1.0)), vec3f(1.0 / 2.2)), 1.0);
}
