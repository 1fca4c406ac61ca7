#include <cuda_fp16.h>
#include <stdint.h>
// C[M,N] = A[M,K] * B[K,N], fp16 in, f32 out. 64x64x32 tile, 4 warps, double buffered.
extern "C" __global__ void matmul(const half* A, const half* B, float* C, int M, int N, int K) {
  __shared__ __align__(128) half As[2][64][40];
  __shared__ __align__(128) half Bs[2][32][72];
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  int bm = blockIdx.y * 64, bn = blockIdx.x * 64;
  float acc[2][4][4] = {};
  int wm = (warp >> 1) * 32, wn = (warp & 1) * 32;
  auto load = [&](int buf, int k0) {
    for (int i = 0; i < 2; i++) {
      int c = tid + i * 128; int r = c / 4, col = (c % 4) * 8;
      uint32_t d = __cvta_generic_to_shared(&As[buf][r][col]);
      int p = (bm + r < M && k0 + col < K) ? 16 : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(d), "l"(A + (size_t)(bm + r) * K + k0 + col), "r"(p));
      int r2 = c / 8, col2 = (c % 8) * 8;
      uint32_t d2 = __cvta_generic_to_shared(&Bs[buf][r2][col2]);
      int p2 = (k0 + r2 < K && bn + col2 < N) ? 16 : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(d2), "l"(B + (size_t)(k0 + r2) * N + bn + col2), "r"(p2));
    }
    asm volatile("cp.async.commit_group;");
  };
  int nk = (K + 31) / 32;
  load(0, 0);
  for (int kt = 0; kt < nk; kt++) {
    if (kt + 1 < nk) { load((kt + 1) & 1, (kt + 1) * 32); asm volatile("cp.async.wait_group 1;"); }
    else asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    int b = kt & 1;
    for (int ks = 0; ks < 2; ks++) {
      uint32_t a[2][4], bb[4][2];
      for (int i = 0; i < 2; i++) {
        uint32_t ad = __cvta_generic_to_shared(&As[b][wm + i * 16 + (lane & 15)][ks * 16 + (lane >> 4) * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3]) : "r"(ad));
      }
      for (int j = 0; j < 4; j++) {
        uint32_t bd = __cvta_generic_to_shared(&Bs[b][ks * 16 + (lane & 15)][wn + j * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(bb[j][0]), "=r"(bb[j][1]) : "r"(bd));
      }
      for (int i = 0; i < 2; i++) for (int j = 0; j < 4; j++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
          : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(bb[j][0]), "r"(bb[j][1]));
    }
    __syncthreads();
  }
  int g = lane >> 2, t = lane & 3;
  for (int i = 0; i < 2; i++) for (int j = 0; j < 4; j++) for (int h = 0; h < 2; h++) {
    int r = bm + wm + i * 16 + g + h * 8, c = bn + wn + j * 8 + t * 2;
    if (r < M && c < N) { C[(size_t)r * N + c] = acc[i][j][h * 2]; C[(size_t)r * N + c + 1] = acc[i][j][h * 2 + 1]; }
  }
}
