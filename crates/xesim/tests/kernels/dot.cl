short8 __builtin_IB_subgroup_block_read_flat_u16_m8k16v1(long base, int w, int h, int p, int2 c);
int8 __builtin_IB_subgroup_block_read_flat_transform_u16_k16(long base, int w, int h, int p, int2 c);
void __builtin_IB_subgroup_block_write_flat_u32_m8k16v1(long base, int w, int h, int p, int2 c, uint8 v);
float8 __attribute__((overloadable)) intel_sub_group_f16_f16_matrix_mad_k16(short8 a, int8 b, float8 c);
__kernel __attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(16,1,1)))
void dot(__global const half* a, __global const half* b, __global float* c, int m, int n, int k) {
  float8 acc = 0;
  int2 at = (int2)(get_group_id(0) * 16, get_group_id(1) * 8);
  for (int i = 0; i < k; i += 16) {
    short8 x = __builtin_IB_subgroup_block_read_flat_u16_m8k16v1((long)a, k*2-1, m-1, k*2-1, (int2)(i, at.y));
    int8 y = __builtin_IB_subgroup_block_read_flat_transform_u16_k16((long)b, n*2-1, k-1, n*2-1, (int2)(at.x, i));
    acc = intel_sub_group_f16_f16_matrix_mad_k16(x, y, acc);
  }
  __builtin_IB_subgroup_block_write_flat_u32_m8k16v1((long)c, n*4-1, m-1, n*4-1, at, as_uint8(acc));
}
