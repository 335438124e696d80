#version 450
// SHA-256 (FIPS 180-4) of messages of 64 bytes, one for each invocation. A message of exactly one block takes a second
// block of padding, which is the same for all.

layout(local_size_x = 32) in;

layout(std430, set = 0, binding = 0) readonly buffer Messages { uint words[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Digests { uint digests[]; };

const uint K[64] = uint[](
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u);

uint rotate(uint x, int n) {
    return (x >> n) | (x << (32 - n));
}

uint byte_swap(uint x) {
    return (rotate(x, 8) & 0xff00ff00u) | (rotate(x, 24) & 0x00ff00ffu);
}

void compress(inout uint state[8], inout uint w[16]) {
    uint a = state[0], b = state[1], c = state[2], d = state[3];
    uint e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; ++i) {
        if (i >= 16) {
            // The message schedule in a ring of 16 words.
            uint w15 = w[(i + 1) & 15];
            uint w2 = w[(i + 14) & 15];
            uint s0 = rotate(w15, 7) ^ rotate(w15, 18) ^ (w15 >> 3);
            uint s1 = rotate(w2, 17) ^ rotate(w2, 19) ^ (w2 >> 10);
            w[i & 15] += s0 + w[(i + 9) & 15] + s1;
        }
        uint s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint choice = (e & f) ^ (~e & g);
        uint t1 = h + s1 + choice + K[i] + w[i & 15];
        uint s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint majority = (a & b) ^ (a & c) ^ (b & c);
        uint t2 = s0 + majority;
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

void main() {
    uint id = gl_GlobalInvocationID.x;
    uint state[8] = uint[](0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu,
                           0x1f83d9abu, 0x5be0cd19u);
    uint w[16];
    for (uint i = 0u; i < 16u; ++i) {
        w[i] = byte_swap(words[id * 16u + i]);
    }
    compress(state, w);
    for (uint i = 0u; i < 16u; ++i) {
        w[i] = 0u;
    }
    w[0] = 0x80000000u;
    w[15] = 512u;
    compress(state, w);
    for (uint i = 0u; i < 8u; ++i) {
        digests[id * 8u + i] = byte_swap(state[i]);
    }
}
