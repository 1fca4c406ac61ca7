short8 __builtin_IB_subgroup_block_read_flat_u16_m8k16v1(long base, int w, int h, int p, int2 c);
int8 __builtin_IB_subgroup_block_read_flat_transform_u16_k16(long base, int w, int h, int p, int2 c);
void __builtin_IB_subgroup_block_write_flat_u32_m8k16v1(long base, int w, int h, int p, int2 c, uint8 v);
float8 __attribute__((overloadable)) intel_sub_group_f16_f16_matrix_mad_k16(short8 a, int8 b, float8 c);
__kernel __attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(512,1,1)))
void gemm(__global const half* a, __global const half* b, __global float* c, int m, int n, int k) {
  int w = get_sub_group_id();
  int y = get_group_id(0) * 256 + w / 4 * 32, x = get_group_id(1) * 256 + w % 4 * 64;
  float8 acc[4][4];
  __attribute__((opencl_unroll_hint)) for (int r = 0; r < 4; r++) __attribute__((opencl_unroll_hint)) for (int s = 0; s < 4; s++) acc[r][s] = 0;
  for (int i = 0; i < k; i += 16)
    for (int s = 0; s < 4; s++) {
      int8 q = __builtin_IB_subgroup_block_read_flat_transform_u16_k16((long)b, n*2-1, k-1, n*2-1, (int2)(x + 16 * s, i));
      for (int r = 0; r < 4; r++) {
        short8 p = __builtin_IB_subgroup_block_read_flat_u16_m8k16v1((long)a, k*2-1, m-1, k*2-1, (int2)(i, y + 8 * r));
        acc[r][s] = intel_sub_group_f16_f16_matrix_mad_k16(p, q, acc[r][s]);
      }
    }
  for (int r = 0; r < 4; r++) for (int s = 0; s < 4; s++)
    __builtin_IB_subgroup_block_write_flat_u32_m8k16v1((long)c, n*4-1, m-1, n*4-1, (int2)(x + 16 * s, y + 8 * r), as_uint8(acc[r][s]));
}
