// One step of a particle system: drag, gravity and an attractor, bounces on the walls of a box; particles whose time is
// over start again at a pseudo-random place. Colours are kept as packed halves.

struct Params {
    gravity: vec3<f32>,
    dt: f32,
    attractor: vec3<f32>,
    strength: f32,
    drag: f32,
    bounce: f32,
    seed: u32,
    count: u32,
}

struct Particle {
    place: vec3<f32>,
    life: f32,
    velocity: vec3<f32>,
    colour: u32, // two halves: heat, brightness
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> particles: array<Particle>;
@group(0) @binding(2) var<storage, read_write> born: atomic<u32>;

fn hash(x: u32) -> u32 {
    let state = x * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

// In [-1, 1).
fn random(x: u32) -> f32 {
    return f32(hash(x) >> 8u) * (2.0 / 16777216.0) - 1.0;
}

fn restart(id: u32) -> Particle {
    let n = atomicAdd(&born, 1u);
    let s = hash(id ^ params.seed);
    var p: Particle;
    p.place = vec3<f32>(random(s), random(s + 1u), random(s + 2u)) * 0.9;
    p.velocity = vec3<f32>(random(s + 3u), random(s + 4u), random(s + 5u)) * 0.1;
    p.life = 1.0 + f32(hash(s + 6u) & 255u) / 64.0;
    p.colour = pack2x16float(vec2<f32>(1.0, 0.5 + 0.5 * random(s + 7u)));
    return p;
}

@compute @workgroup_size(48)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= params.count {
        return;
    }
    var p = particles[i];
    p.life -= params.dt;
    if p.life <= 0.0 {
        particles[i] = restart(i);
        return;
    }
    let away = params.attractor - p.place;
    let distance2 = max(dot(away, away), 0.01);
    let pull = away * (params.strength / (distance2 * sqrt(distance2)));
    p.velocity = (p.velocity + (params.gravity + pull) * params.dt) * exp(-params.drag * params.dt);
    p.place += p.velocity * params.dt;
    for (var axis = 0; axis < 3; axis++) {
        if abs(p.place[axis]) > 1.0 {
            p.place[axis] = sign(p.place[axis]) * (2.0 - abs(p.place[axis]));
            p.velocity[axis] *= -params.bounce;
        }
    }
    let look = unpack2x16float(p.colour);
    let heat = clamp(look.x + 0.1 * length(pull) - 0.2 * params.dt, 0.0, 4.0);
    p.colour = pack2x16float(vec2<f32>(heat, look.y * 0.999));
    particles[i] = p;
}
