// A scene without a mesh: distances to its surfaces are computed, and every pixel walks along its ray.

struct Frame {
    time: f32,
    aspect: f32,
}
@group(0) @binding(0) var<uniform> frame: Frame;

struct Screen {
    @builtin(position) clip: vec4f,
    @location(0) place: vec2f,
}

@vertex
fn vertex(@location(0) position: vec3f) -> Screen {
    return Screen(vec4f(position, 1.0), vec2f(position.x * frame.aspect, -position.y));
}

fn smooth_min(a: f32, b: f32, k: f32) -> f32 {
    let h = clamp(0.5 + 0.5 * (b - a) / k, 0.0, 1.0);
    return mix(b, a, h) - k * h * (1.0 - h);
}

fn box(p: vec3f, half: vec3f, round: f32) -> f32 {
    let q = abs(p) - half + round;
    return length(max(q, vec3f(0.0))) + min(max(q.x, max(q.y, q.z)), 0.0) - round;
}

fn ring(p: vec3f, large: f32, small: f32) -> f32 {
    return length(vec2f(length(p.xz) - large, p.y)) - small;
}

fn distance_to(p: vec3f) -> f32 {
    let drop = length(p - vec3f(0.7 * sin(frame.time), 0.35, 0.0)) - 0.45;
    let second = length(p - vec3f(-0.6, 0.05 + 0.2 * cos(frame.time), 0.3)) - 0.35;
    let blob = smooth_min(drop, second, 0.4);
    let holes = max(box(p - vec3f(0.0, -0.6, 0.0), vec3f(1.3, 0.25, 0.9), 0.08), 0.3 - length(p.xz - vec2f(0.8, 0.3)));
    let hoop = ring(p - vec3f(0.0, 0.2, 0.0), 1.1, 0.06);
    return min(min(smooth_min(blob, holes, 0.15), hoop), p.y + 0.85);
}

fn slope(p: vec3f) -> vec3f {
    let e = vec2f(0.002, -0.002);
    return normalize(e.xyy * distance_to(p + e.xyy) + e.yyx * distance_to(p + e.yyx)
        + e.yxy * distance_to(p + e.yxy) + e.xxx * distance_to(p + e.xxx));
}

fn shade(p: vec3f, way: vec3f) -> f32 {
    var open = 1.0;
    var t = 0.03;
    for (var k = 0; k < 16; k++) {
        let d = distance_to(p + way * t);
        open = min(open, 8.0 * d / t);
        t += clamp(d, 0.04, 0.4);
        if open < 0.02 || t > 4.0 { break; }
    }
    return clamp(open, 0.0, 1.0);
}

@fragment
fn fragment(screen: Screen) -> @location(0) vec4f {
    let eye = vec3f(1.6, 1.5, 3.4);
    let forward = normalize(vec3f(0.0, -0.1, 0.0) - eye);
    let right = normalize(cross(forward, vec3f(0.0, 1.0, 0.0)));
    let up = cross(right, forward);
    let way = normalize(forward * 1.9 + right * screen.place.x + up * screen.place.y);
    let sky = mix(vec3f(0.85, 0.88, 0.92), vec3f(0.35, 0.55, 0.85), clamp(way.y * 1.5 + 0.4, 0.0, 1.0));
    var t = 0.5;
    var hit = false;
    for (var k = 0; k < 80; k++) {
        let d = distance_to(eye + way * t);
        if d < 0.001 * t { hit = true; break; }
        t += d;
        if t > 14.0 { break; }
    }
    if !hit {
        return vec4f(sky, 1.0);
    }
    let p = eye + way * t;
    let n = slope(p);
    let sun = normalize(vec3f(0.6, 0.9, 0.4));
    var base = vec3f(0.9, 0.45, 0.25);
    if p.y < -0.84 {
        let odd = (i32(floor(p.x * 2.0)) + i32(floor(p.z * 2.0))) & 1;
        base = select(vec3f(0.32, 0.34, 0.38), vec3f(0.6, 0.6, 0.58), odd == 1);
    } else if length(p.xz) > 1.02 && p.y > 0.1 {
        base = vec3f(0.85, 0.8, 0.3);
    } else if p.y < -0.3 {
        base = vec3f(0.3, 0.5, 0.6);
    }
    let light = max(dot(n, sun), 0.0) * shade(p + n * 0.01, sun);
    let shine = pow(max(dot(reflect(way, n), sun), 0.0), 30.0) * light;
    let color = base * (0.28 + 0.12 * n.y + 0.9 * light) + 0.4 * shine;
    return vec4f(mix(color, sky, smoothstep(6.0, 14.0, t)), 1.0);
}
