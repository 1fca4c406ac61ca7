// Recursion, function pointers and virtual functions: what can't be inlined.
typedef unsigned u32;

__device__ u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

__device__ bool odd(u32 n);
__device__ __noinline__ bool even(u32 n) { return n == 0 || odd(n - 1); }
__device__ __noinline__ bool odd(u32 n) { return n != 0 && even(n - 1); }

// Each activation has an array of its own, and the one below writes into it.
__device__ __noinline__ u32 path(u32 n, u32 *above) {
    u32 mine[4] = {n, n + 1, n + 2, n + 3};
    if (n > 0) above[n % 4] += path(n - 1, mine);
    return mine[0] + 3 * mine[1] + 5 * mine[2] + 7 * mine[3];
}

extern "C" __global__ void recursion(const u32 *in, u32 *out) {
    u32 t = blockIdx.x * blockDim.x + threadIdx.x, n = in[t] % 16, top[4] = {1, 2, 3, 4};
    u32 p = path(n, top);
    out[4 * t] = fib(n);
    out[4 * t + 1] = even(n) + 2 * odd(n);
    out[4 * t + 2] = p;
    out[4 * t + 3] = top[0] ^ top[1] << 8 ^ top[2] << 16 ^ top[3] << 24;
}

__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int larger(int a, int b) { return a > b ? a : b; }
typedef int (*Op)(int, int);
__device__ Op ops[3] = {plus, times, larger};

struct Shape {
    int a, b;
    __device__ Shape(int a, int b) : a(a), b(b) {}
    __device__ virtual int area() const = 0;
};
struct Box : Shape {
    using Shape::Shape;
    __device__ int area() const override { return a * b; }
};
struct Half : Shape {
    using Shape::Shape;
    __device__ int area() const override { return a * b / 2; }
};
struct Pair { double x; int y; };
__device__ __noinline__ Pair twice(Pair p, Pair (*f)(Pair)) { return f(f(p)); }
__device__ Pair step(Pair p) { return {p.x * 1.5, p.y + 3}; }
__device__ Pair back(Pair p) { return {p.x - 2, p.y * 2}; }

extern "C" __global__ void pointers(const int *in, int *out, double *wide) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, a = in[2 * t], b = in[2 * t + 1];
    out[t] = ops[(unsigned)a % 3](a, b);
    Box box(a, b);
    Half half(a, b);
    const Shape *s = b % 2 ? (const Shape *)&box : (const Shape *)&half;
    int sum = out[t] + s->area();
    Pair p = twice({(double)a, b}, a % 2 ? step : back);
    wide[t] = p.x;
    out[t] = sum + p.y + __shfl_xor_sync(~0u, sum, 1);
}
